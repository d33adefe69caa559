/**
 * Fencing tokens over a quorum: a number for each lock that is greater than that of every lock handed out before.
 *
 * Each node counts the locks it granted on a resource. A node that grants increases its counter and answers with it.
 * The token is the highest answer, and **settled** once a quorum of nodes answered exactly that. Where the answers
 * differ, one more round raises the counter to the token on nodes where the key still holds the attempt's value, and
 * each answers with its counter, which takes the place of what it had answered before. A node that was above the
 * token already thus gives a new maximum, and another round.
 *
 * **Why tokens rise.** Let A be handed out before B. Their quorums share a node, and on that node the counter was A's
 * token while the key was A's, and B's token while the key was B's. Had B its key there first, then that key was gone
 * when A's was set, so B had run out or was given up before A was handed out, and is not handed out after it. So A had
 * its key there first. The counter never falls, and was increased when B's key was set: B's token is the greater.
 *
 * **Why a quorum must answer exactly the token.** That a counter is not below the token keeps locks that come later
 * above it. That it is not above the token either keeps the token above locks that came earlier: a node that has gone
 * on counting may have done so for a lock with a higher token. An answer of "done" to the raising hides that.
 *
 * **What is assumed:**
 *
 * - The key stands, on the nodes whose answers are counted, until the lock is handed out: validity is looked at in
 *   that very moment, and clocks keep to the drift factor. Other nodes may lose it before its time. Once the lock is
 *   handed out every node may: tokens still rise, even where exclusion is lost.
 * - Counters never fall. A node that forgot its data resumes above whatever it gave ({@linkcode counterStart}), and
 *   its answers count only when every attempt that had a key there is over: {@linkcode agreeOnToken} must not be given
 *   those of a node that is still kept out, nor the old counters of one that came back without its last moments.
 *   Without the restart guard nobody sees to that.
 * - "Handed out" is the moment of that decision. A process that is paused afterwards carries a token that may be old
 *   by the time it is used, which is what the store's comparison is there for.
 *
 * Where clocks do worse than assumed, a token is still greater than all that were handed out before the attempt's
 * first request reached a node.
 *
 * `tests/simulation/model` searches every order of events on few nodes for a token that does not rise, with
 * {@linkcode agreeOnToken} deciding, and finds one as soon as a part of the above is left out.
 *
 * @module
 */

const MICROSECONDS_PER_MS = 1_000;
/**
 * By how much the hint is ahead of the client's wall clock, in milliseconds. Nodes whose clocks are ahead of it by less
 * all start from the hint, and so answer the same number to the first lock on a resource.
 */
const HINT_LEAD_MS = 1_000;

/**
 * How long a counter lives after its last use, in milliseconds: a week. One that lived for ever would be a leak for
 * each resource ever locked; one that is gone starts anew above what it was, as time has passed.
 */
export const COUNTER_TTL_MS = 7 * 24 * 60 * 60 * 1_000;

/** What the answers so far amount to. */
export interface TokenAgreement {
  /** The highest answer; 0 where there is none. */
  readonly token: number;
  /** Whether a quorum answered exactly that. If not, a round that raises the other counters to it may settle it. */
  readonly agreed: boolean;
}

/**
 * Judges whether a lock's token is certain. To be asked anew with every answer: one that comes later may settle the
 * token as well as raise it. A token that is settled and handed out stays so, whatever is answered afterwards.
 *
 * @param answers The counter that each node answered last, in any order, with `undefined` for a node that did not grant
 * the lock, has not answered or does not count. A node's answers never fall; one is taken back only where the node then
 * says that the key is gone.
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
    if (answer > token) agreed = 0;
    token = answer;
    agreed++;
  }
  return { token, agreed: agreed >= quorum };
}

/**
 * What a client proposes to nodes that have no counter: its wall clock and a second, or the highest counter it has seen
 * of the resource, if that is more.
 *
 * Two clients whose clocks differ may propose different numbers. A node that forgot its data resumes above what it gave
 * as long as clocks, of clients and of nodes, differ by less than the node was kept out.
 *
 * @param wallMs The client's wall clock, in milliseconds since the Unix epoch.
 * @param highestSeen The highest counter of the resource that a node has answered with; 0 for none.
 * @returns Microseconds, whole; a safe integer until the year 2255.
 */
export function counterHint(wallMs: number, highestSeen = 0): number {
  return Math.max(Math.floor((wallMs + HINT_LEAD_MS) * MICROSECONDS_PER_MS), highestSeen);
}

/**
 * What a missing counter starts from, before it is increased for the first lock: the greater of the node's clock and
 * the client's proposal. Both run faster than any resource is locked, so a counter that is lost resumes above
 * what it was.
 *
 * @param timeUs The node's `TIME`, in microseconds since the Unix epoch.
 * @param hint The {@linkcode counterHint} of the client that asks.
 * @returns Microseconds.
 */
export function counterStart(timeUs: number, hint: number): number {
  return Math.max(timeUs, hint);
}
