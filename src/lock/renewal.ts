/**
 * Extending a lock: by its own timer, or because its holder asks. The numbers of steps are those of
 * the argument in `acquire.ts`.
 *
 * @module
 */
import { emit } from "../events.ts";
import { isHopeless, keysGone, lostError, quorumError } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import { pause } from "../time/pause.ts";
import type { Vote } from "../vote.ts";
import type { HeldLock } from "./held_lock.ts";

/** The share of the TTL between a failed extension and the next try. */
const RETRY_FACTOR = 1 / 15;

/**
 * One try at extending, bounded by `nodeTimeoutMs` and by what is left of the validity.
 *
 * Only nodes that still hold the lock's value count. A lock that is gone on a majority is lost, and
 * never brought back: an extension sets no missing key, whether or not its answers arrive. A try
 * that merely failed leaves the old validity as it was.
 *
 * @param lock The lock.
 * @param ttlMs Its new TTL, in milliseconds. If keys should live longer by an earlier extension,
 * they get what is left of that: else nodes that have missed it would not keep what the lock
 * claims.
 * @param signal Gives the try up.
 * @returns `undefined` if the lock has a new validity, else the votes.
 */
async function tryExtend(
  lock: HeldLock,
  ttlMs: number,
  signal?: AbortSignal,
): Promise<readonly Vote[] | undefined> {
  const { settings: { nodeTimeoutMs }, client: { extensionGate }, round: won } = lock;
  // One whose last try has failed, or is under way, goes ahead of the crowd that waits, because it
  // ends sooner.
  const inside = extensionGate.enter() ||
    await extensionGate.wait(lock.remainingMs(), signal, lock.lastTry !== undefined);
  if (!inside) return [];
  const round = won.follow(); // step 7: it reads the clocks
  // mutation: extended-below-the-claim
  ttlMs = Math.max(ttlMs, Math.ceil(lock.keysEndMs - round.startMs));
  round.ttlMs = ttlMs;
  won.ttlMs = Math.max(won.ttlMs, ttlMs); // keys may live for longer from here on
  lock.lastTry ??= round;
  const timeoutMs = Math.min(nodeTimeoutMs, lock.remainingMs(round.startMs));
  if (lock.active) await round.ask("extend", timeoutMs, signal); // or it ended while it waited
  extensionGate.leave();
  const extended = lock.active && conclude(lock, round); // step 6
  return extended ? undefined : round.votes;
}

/**
 * Concludes a try of a lock that has not ended meanwhile: takes the new validity, or ends the lock
 * if it is gone on a majority.
 *
 * @returns Whether the lock has the new validity.
 */
function conclude(lock: HeldLock, round: Round): boolean {
  const extended = lock.accept(round);
  const { settings: { onEvent }, resources } = lock;
  if (onEvent) {
    const { votes, ageMs } = round;
    const fields = { resources, votes, elapsedMs: ageMs, remainingMs: lock.remainingMs() };
    if (extended) emit(onEvent, { type: "extended", extensions: lock.extensions, ...fields });
    else emit(onEvent, { type: "extend-failed", ...fields });
  }
  if (extended) {
    round.forEachDenied((nodeIndex, missing) => {
      // mutation: filled-in-after-its-end
      if (lock.held) fillIn(lock, round.ttlMs, nodeIndex, missing);
    });
  }
  if (round.deniedByMajority) {
    lock.loseIfOver(); // keys that have expired are not gone
    lock.lose("gone", keysGone(round.keys));
  }
  return extended;
}

/** Extends a lock that extends itself; if that fails, has it try again soon. */
export async function renew(lock: HeldLock): Promise<void> {
  if (lock.exhausted) return;
  const { settings: { ttlMs }, client: { wheel: { continuous } } } = lock;
  const failed = await tryExtend(lock, ttlMs);
  if (failed) lock.extendAt(continuous.nowMs() + tryAgainMs(ttlMs));
}

/**
 * Extends because the holder asks. Repeats a failed try until the validity that the lock has now is
 * over, unless too many nodes refuse for good.
 *
 * @param lock The lock.
 * @param ttlMs Its new TTL, in milliseconds.
 * @param signal Gives up; the lock stays as it is.
 * @throws {LockLostError} If the lock is over before an extension succeeds, or may not be extended
 * again.
 * @throws {QuorumError} If too many nodes refuse for good; or if no extension has succeeded by
 * then, and the lock lives on because it extends itself.
 */
export async function extend(
  lock: HeldLock,
  ttlMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const { client: { wheel, nodes }, resources, endMs } = lock;
  for (;;) {
    signal?.throwIfAborted();
    lock.throwIfOver("extend");
    const cause = lock.exhausted;
    if (cause) throw lostError("extend", resources, lock.round.votes, "extensions-max", cause);
    const votes = await tryExtend(lock, ttlMs, signal);
    if (!votes) return;
    if (lock.held) {
      if (wheel.continuous.nowMs() >= endMs || isHopeless(votes, nodes.length)) {
        throw quorumError("extend", resources, votes, nodes.length);
      }
      await pause(wheel, Math.min(tryAgainMs(lock.settings.ttlMs), lock.remainingMs()), signal);
    }
  }
}

/** How long to wait, once nodes did not answer about a lock, in milliseconds. */
export function tryAgainMs(ttlMs: number): number {
  return ttlMs * RETRY_FACTOR;
}

/**
 * Asks one node to set the keys again, if nobody else has one of them. A lock would erode otherwise
 * as nodes restart one by one. The answer counts for nothing: the node counts from the next
 * extension on. A node that lost only some of several keys denies, and stays without them.
 *
 * A node that denies may have missed the adoption of the lock, or another client that adopted it,
 * too, has given the former value back. It is asked to adopt the lock.
 *
 * @param lock The lock. Its release takes these keys back as well. The counter of the node is
 * raised to its fencing token, if it has one.
 * @param ttlMs How long the keys are to live, in milliseconds.
 * @param nodeIndex Which node.
 * @param missing Whether it has only found keys missing.
 */
function fillIn(
  { round: won, client: { nodes } }: HeldLock,
  ttlMs: number,
  nodeIndex: number,
  missing: boolean,
): void {
  // mutation: adopted-lock-never-heals
  if (!missing && won.replaces === undefined) return;
  const node = nodes[nodeIndex];
  // mutation: filled-in-key-forgotten
  won.filledInOn |= 1 << nodeIndex;
  const replaces = missing ? undefined : won.replaces;
  // without the guard, because nobody reads the answer; and past those that wait for the lock
  const filling = won.follow({ guardMs: 0, entersAtOnce: true, replaces });
  filling.ttlMs = ttlMs;
  node.ask(missing ? "acquire" : "adopt", filling, nodeIndex);
  const counterFloor = won.counts?.token;
  if (counterFloor === undefined) return;
  node.ask("raiseCounters", won.follow({ counterFloor }), nodeIndex);
}
