/**
 * What an operation is: a script or a plain command, what it gets of a request, and what its reply
 * means. This table is in the order in which the files are best read. Each script has the keys of
 * a lock as `KEYS`; beside a key `k` it reads and writes these:
 *
 * | file                  | script            | beside `k`           | replies                    |
 * | --------------------- | ----------------- | -------------------- | -------------------------- |
 * | `extend.ts`           | `EXTEND`          |                      | -1, 0, 1                   |
 * | `fencing.ts`          | `ACQUIRE_COUNTED` | fence                | 0, counter                 |
 * |                       | `RAISE`           | fence                | -1, 0, counter             |
 * | `adopt.ts`            | `ADOPT`           | fence                | -1, 0, 1, counter          |
 * |                       | `GIVE_BACK`       |                      | 0, 1                       |
 * | `queue.ts`            | parts of scripts  | queue, turn          |                            |
 * | `acquire.ts`          | `ACQUIRE_OR_WAIT` | all of them          | 0, 1, counter, position    |
 * | `readers.ts`          | `ACQUIRE_SHARED`  | readers, queue, turn | 0, 1, position             |
 * |                       | `EXTEND_SHARED`   | readers, queue       | -1, 0, 1                   |
 * |                       | `KEEP`            | readers, queue       | -1, 0, 1                   |
 * | `pool.ts`             | `ACQUIRE_ANY`     | all of them          | 1, counter, position, mask |
 * | `release.ts`          | `RELEASE`         | queue, turn          | 0, 1, 2                    |
 * |                       | `RELEASE_QUEUED`  | readers, queue, turn | 0, 1, 2                    |
 * | `../restart_guard.ts` | `STATE_LUA`       | `hasp:born` alone    | age, clock, uptime, run id |
 * | `../inspect_key.ts`   | `GET_LUA`         | (changes nothing)    | a text                     |
 * | `../operated_node.ts` | `TRIAL_LUA`       | (changes nothing)    | commands refused           |
 *
 * 0 is a denial; so is -1, if keys are missing and nothing else is in the way. A grant is 1, or a
 * counter of fencing tokens; that of a release is 2 if others wait. `EXTEND` and `RELEASE` reply so
 * for each key. A position is where the ticket stands in the queues, a mask which keys of the pool
 * are free. `KEEP` is the script of `EXTEND_SHARED`, with one more argument. The last two scripts
 * are always sent whole.
 *
 * Scripts for callers that wait have one shape: is a key held, or another's turn (`contendFor`)? If
 * not, the caller leaves the queues (`take`) and gets the keys (`grant`, but for readers); else it
 * stands in the queues (`stand`), and gets its position. `RELEASE` and `RELEASE_QUEUED` have one,
 * too: they take the value off the keys, and notify who is next, where a key is free (`ensureTurn`)
 * and where readers hold it (`notifyReaders`).
 *
 * Any other `_LUA` is a part of several scripts: `HELD_LUA` begins and `JOIN_LUA` ends them, all
 * others are functions, which call those of the parts before. `ASK_LUA` contains `QUEUE_LUA`, and
 * `JOIN_LUA` contains `STAND_LUA`. Each run of a script makes all functions that it passes, so
 * these stand behind what can return before.
 *
 * *Queue* is `hasp:queue:k`, a sorted set of tickets; *readers* `hasp:readers:k`, a sorted set of
 * values; *fence* `hasp:fence:k`, a counter; and *turn* `hasp:turn:k`, the ticket whose turn it is,
 * and the one that was the last in the queue when it began. For the ticket of a pool there is also
 * the key that it has its turn for, under its own name.
 *
 * An error of `redis.call` is the reply of the script. So a script calls by `redis.pcall` what must
 * not keep it from setting or deleting keys: what concerns others, such as their queue, and what a
 * server may refuse.
 *
 * Numbers in the Lua are interpolated from constants. Where a command that runs often gets one, it
 * is quoted: a server takes half a command's time to write a number as a text. Names are written
 * out, so that a reader sees them; a test compares them.
 *
 * @module
 */
import {
  CONTENDED,
  DENIED,
  GRANTED,
  isCount,
  MISSING,
  type Outcome,
} from "../../quorum/outcome.ts";
import type { QuorumRequest } from "../../quorum/quorum_node.ts";
import type { RawReply } from "../../redis/reply.ts";

/** A script, and the digest that `EVALSHA` calls it by. */
export interface Script {
  /**
   * The Lua source. Servers have Lua 5.1 or newer. From 5.3 on, `2 ^ n` is a fraction, which not
   * every server replies as an integer, and `math.max` compares no text with a number. Dragonfly
   * gives scripts the scores of a sorted set as numbers, other servers as texts.
   */
  readonly source: string;
  /** The SHA-1 of the source, in lower-case hexadecimal digits. */
  readonly sha1: string;
}

/**
 * Joins the parts of a script: mostly functions, each with a comment above it that is not sent. A
 * part with a number from TypeScript is made by a function: bundlers keep a text with a number in
 * it, although nobody uses the script.
 */
export function lua(...parts: readonly (string | (() => string))[]): string {
  return parts.map((part) => typeof part === "string" ? part : part()).join("\n");
}

/**
 * One operation. A reply means something only together with its operation: most are answered by an
 * integer.
 */
export interface Operation<Content = QuorumRequest> extends Partial<Script> {
  /**
   * What it does: sets the keys, extends them, raises their counters, or takes something back. What
   * takes back is sent again if it failed; what sets or extends is refused if there is no room.
   */
  readonly kind: "acquire" | "extend" | "raise" | "release";
  /** Whether it puts the request's ticket in the queues if it denies (`queued` in `queue.ts`). */
  readonly queues?: boolean;
  /**
   * Whether its script does the same for each key, and replies a list if there are several. So it
   * can have the keys of many requests: it gets what `argv` returns for each request.
   */
  readonly eachKey?: boolean;
  /**
   * `ARGV`: what its script gets behind the keys. Without a script, the whole command.
   */
  argv(content: Content): string[];
  /**
   * What a reply that is no error means; `undefined` if the operation is never answered like this.
   */
  read(reply: RawReply, content: Content): Outcome | undefined;
}

/** An operation with a script. */
export type ScriptOperation<Content = QuorumRequest> = Operation<Content> & Script;

/** What a release needs of a request. */
export type Release = Pick<
  QuorumRequest,
  "keys" | "value" | "replaces" | "ticket" | "pool" | "keepsTicket" | "mode" | "keptMs"
>;

/** What each reply of a script means. */
export type Outcomes = Readonly<Record<number, Outcome>>;
/** Those of an extension, and of a release. */
// mutation: missing-key-counts-as-extended
export const EXTENDED: Outcomes = { "-1": MISSING, 0: DENIED, 1: GRANTED };
export const RELEASED: Outcomes = { 0: DENIED, 1: GRANTED, 2: CONTENDED };

// a reply that was not understood comes first
const WORST_FIRST = [undefined, DENIED, MISSING, CONTENDED, GRANTED];

/** Reads a reply that is one of these. */
export function oneOf(outcomes: Outcomes): (reply: RawReply) => Outcome | undefined {
  return (reply) => isNumber(reply) ? outcomes[reply] : undefined;
}

/**
 * Reads the reply of a script for `eachKey` to a request: one of these, or of several keys a list
 * of them, of which the worst counts.
 */
export function oneOfEach(outcomes: Outcomes): Operation<Release>["read"] {
  const read = oneOf(outcomes);
  return (reply, { keys }) => {
    if (keys.length === 1) return read(reply);
    if (!Array.isArray(reply) || reply.length !== keys.length) return undefined;
    return worstOf(reply.map(read));
  };
}

/** A function of its own, because a closure in its caller would cost each reply memory. */
function worstOf(found: readonly (Outcome | undefined)[]): Outcome | undefined {
  return WORST_FIRST.find((outcome) => found.includes(outcome));
}

/** `ARGV` of an acquisition: value, TTL, and the hint of a fencing token or an empty text. */
export function acquireArgs({ value, ttlMs, counterHint }: QuorumRequest): string[] {
  return [value, String(ttlMs), String(counterHint ?? NONE)];
}

/** Reads a denial: 0; and a grant: 1, or with fencing tokens the counter. */
export function readAcquired(
  reply: RawReply,
  { counterHint }: QuorumRequest,
): Outcome | undefined {
  if (reply === 0) return DENIED;
  return (counterHint === undefined ? reply === 1 : isCount(reply)) ? GRANTED : undefined;
}

/** Whether a reply is an integer. */
export function isNumber(reply: RawReply): reply is number {
  return typeof reply === "number";
}

/** In place of an argument that a script does without. */
export const NONE = "";
