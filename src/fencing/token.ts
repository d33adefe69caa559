/**
 * Fencing tokens over a quorum: each lock that is handed out has a greater number than every lock
 * on the resource that was handed out before.
 *
 * Each node counts the locks that it granted on a resource. A node that grants a lock increases its
 * counter and replies with it. The token is the highest reply, and **agreed** once a quorum of
 * nodes replied exactly that. If the replies differ, one more round raises the counter to the token
 * on nodes whose key still holds the attempt's value. Each of them replies with its counter, which
 * replaces what it replied before. A node whose counter is above the token thus gives a new
 * maximum, and another round.
 *
 * **Why tokens rise.** Suppose that A was handed out before B. Their quorums share a node. On that
 * node the counter was A's token while the key was A's, and B's token while the key was B's. If B
 * had its key there first, that key was gone when A's was set. So B had expired or was given up
 * before A was handed out, and is not handed out after it. Therefore A had its key there first. The
 * counter never falls, and it increased when B's key was set: B's token is greater.
 *
 * **Why a quorum must reply exactly the token.** Counters that are not below the token keep later
 * locks above it. Counters that are not above it keep the token above earlier locks: a counter that
 * has risen further may have done so for a lock with a higher token. A reply that only confirms the
 * raising hides that.
 *
 * **What is assumed:**
 *
 * - On the nodes whose replies are counted, the key exists until the lock is handed out. Validity
 *   is checked at that moment, and clocks keep to the drift factor. Other nodes may lose the key
 *   early. Once the lock is handed out every node may: tokens still rise, even though exclusion is
 *   lost.
 * - Counters never fall. See below.
 * - "Handed out" is the moment of that decision. A process that is paused afterwards may carry a
 *   token that is old by the time it is used. That is what the store's comparison is for.
 *
 * If clocks drift more than assumed, a token still exceeds all that were handed out before the
 * attempt's first request reached a node.
 *
 * **Why a counter never falls.** A missing counter starts from the node's clock (`TIME`), in
 * microseconds, or from the client's {@linkcode counterHint} if that is within `HINT_TOLERANCE_US`
 * of it (the constants are in `redis_node/scripts/fencing.ts`). After that a counter only
 * increases: by one for each lock, to a token, or to the clock when it is `COUNTER_AGE_US_MAX`
 * behind it. Each time that it is set to a clock or a token it expires `COUNTER_TTL_MS` after the
 * node's clock has reached that value, or from now if the clock is past it. So when it expires, the
 * node's clock is days ahead of it, and the next counter starts above it. One microsecond is
 * shorter than the time between two locks, so the count of locks does not change that.
 *
 * A counter that is a day behind when it is used is renewed at that moment, so it lives at least a
 * week after its last use (less the tolerance), and renewing it costs no command between. A client
 * whose clock is days behind does not notice that; then the counter may expire earlier, and starts
 * from the node's clock, as after any other expiry.
 *
 * **Wrong clocks.** No client's clock moves a counter: a hint that is off by more than the
 * tolerance is ignored, so that client pays a second round on a fresh resource and changes nobody's
 * tokens. No token is carried from one resource to another. A node's clock that is years ahead
 * moves the tokens of the resources that it counts ahead, to its time. They still rise, and they
 * stay there when the clock is corrected: other nodes keep a counter that was raised to such a
 * token until their own clocks have passed it. A clock that is years behind gives low counters,
 * which the second round raises. A clock beyond the year 2255 gives no safe integer: the node's
 * vote is an error.
 *
 * **When tokens can fall.** Tokens can fall if a counter does:
 *
 * - a node came back with older data, from a snapshot or without its last second of writes. Its
 *   counters go on from older numbers, even if all clocks are right. The restart guard keeps the
 *   node out and withholds counters from before the restart; without the guard nothing does. It
 *   sees no restart if a whole machine is put back to a snapshot in which the server was running;
 * - a node lost its data, and its clock (or a raised token) had been ahead, so that the next
 *   counter starts below the last one. The tolerance lets a hint put a counter a minute ahead. The
 *   restart guard keeps the node out for as long as clocks may be apart, and withholds counters
 *   that are no more than a minute above the loss; without the guard nothing does;
 * - a node's clock was set ahead by more than a week, its counters expired, and the clock was set
 *   back below them;
 * - or somebody deleted, renamed or overwrote a counter (`hasp:fence:…`), or the node evicted it.
 *
 * In `tests/simulation` each random run with fencing checks that tokens rise in the order in which
 * locks were handed out.
 *
 * @module
 */

const MICROSECONDS_PER_MS = 1_000;
/**
 * By how much the hint is ahead of the client's wall clock, in milliseconds. A hint that is not
 * behind the node's clock exceeds what that clock gave to an earlier lock.
 */
const HINT_LEAD_MS = 1_000;

/** What the replies so far amount to. */
export interface TokenAgreement {
  /** The highest reply; 0 before the first reply. */
  readonly token: number;
  /**
   * Whether a quorum replied exactly that. If not, a round that raises the other counters may reach
   * agreement.
   */
  readonly agreed: boolean;
}

/**
 * Decides whether a lock's token is certain. Ask again with every reply: a later one may complete
 * the agreement as well as raise the token. A token that was agreed on and handed out stays,
 * whatever is replied afterwards.
 *
 * @param answers The counter that each node replied last, in any order, with `undefined` for a node
 * that did not grant the lock, has not replied or does not count. A node's replies never fall; one
 * is dropped only if the node then replies that the key is gone.
 * @param quorum How many nodes must agree.
 * @returns The token, and whether the lock may be handed out with it.
 */
export function agreeOnToken(
  answers: readonly (number | undefined)[],
  quorum: number,
): TokenAgreement {
  let token = 0;
  let agreed = 0;
  for (const answer of answers) {
    if (answer === undefined || answer < token) continue;
    // mutation: token-agreed-by-lower-counters
    if (answer > token) agreed = 0;
    token = answer;
    agreed++;
  }
  return { token, agreed: agreed >= quorum };
}

/**
 * What a client proposes to nodes that have no counter: its wall clock and a second. Nodes whose
 * clocks are within the tolerance all start from the same number, so the first lock on a resource
 * takes one round.
 *
 * @param wallMs The client's wall clock, in milliseconds since the Unix epoch.
 * @returns Microseconds, whole; a safe integer until the year 2255.
 */
export function counterHint(wallMs: number): number {
  return Math.floor((wallMs + HINT_LEAD_MS) * MICROSECONDS_PER_MS);
}
