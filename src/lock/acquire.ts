/**
 * Acquiring a lock: the Redlock algorithm, and why it excludes.
 *
 * **Claim.** Two handles for one resource never report `held` at the same instant, unless both are
 * in shared mode.
 *
 * **Assumptions.**
 *
 * 1. *Clocks.* While one TTL passes, the clock of a node and the client's elapsed time differ by at
 *    most the drift: `ceil(ttlMs × driftFactor) + 2` ms. From one look at the client's two clocks
 *    to the next, at least one of them counts all the time that passes.
 * 2. *Nodes.* A node keeps a key until its TTL is over or a command with its value deletes it:
 *    nobody else deletes, renames, shortens or overwrites keys. It runs each command as a whole,
 *    and the commands of one connection in their order. A custom node keeps what its interface
 *    promises (`lock_node.ts`).
 * 3. *Values.* No two attempts have the same value.
 * 4. *One list.* All clients list the same nodes, with the same database and the same `keyPrefix`.
 *    Each address is one server all the time, with no load balancer and no failover behind it.
 *
 * If nodes forget keys, exclusion holds while fewer than g + quorum − N of them do, where g is the
 * number of nodes that hold the lock's keys. The restart guard keeps a node that forgot from
 * voting. A process that is paused between a look at `held` and the write that it protects is
 * outside the claim: that is what the fencing token is for.
 *
 * **Argument.** The numbers of the steps are those in the code of {@linkcode acquire},
 * `held_lock.ts`, `renewal.ts` and `release.ts`.
 *
 * 1. *Start.* {@linkcode Round} reads the client's clocks before the first byte is sent. So every
 *    key of the attempt is set after that reading, and by assumption 1 no node drops it before the
 *    reading is `ttlMs` less drift old: before the *validity* is over.
 * 2. *Count.* A node grants only if it set all keys, and it sets them only if none of them existed.
 *    A grant counts once, for its own round. So after a quorum of grants, a quorum of nodes holds
 *    the keys with this attempt's value.
 * 3. *Clocks.* After the count the clocks are read again. The lock is accepted only if validity is
 *    left, and {@linkcode HeldLock.held} reads the clocks on every access: `held` is true only
 *    while `elapsed < validity`. Elapsed is the sum of what the faster of the two clocks counts
 *    from look to look (`continuous_clock.ts`), because a monotonic clock stops while a machine is
 *    suspended and a wall clock can be set back. So it counts all the time that passes (assumption
 *    1), and never falls. By steps 1 and 2 a quorum of nodes holds the keys whenever `held` is
 *    true.
 * 4. *Intersection.* Two quorums share a node (assumption 4), and a key has one value at a time.
 *    Two handles that are held at one instant would need two values under one key on that node.
 *    That is the claim, for a lock that is neither undone nor extended.
 * 5. *Undo takes nothing from a held lock.* It deletes keys that hold the value of its own attempt.
 *    That value belongs to one attempt (assumption 3), which was not accepted, or whose handle has
 *    ended before: `held` is false from then on. An undo leaves nothing behind, because it follows
 *    the command that it undoes on the same connection, or on the next one if that breaks, and a
 *    round that was cancelled sends nothing more that could set a key. A grant that arrives after
 *    the decision is only counted in `votes`: nothing accepts the round again.
 * 6. *A lost lock stays lost.* A handle ends once: `HeldLock` sets its end and never clears it, and
 *    `held` is false from then on. Nothing that the nodes do later matters to it. Nor do its keys
 *    come back, because an extension sets no missing key. A node is filled in only after a round
 *    that a quorum granted and while the lock is held, and it counts for nothing in that round.
 * 7. *An extension is a new start.* Its validity counts from its own reading of the clocks, before
 *    its first byte. A node grants it only if all keys hold the value, and never shortens a TTL: so
 *    steps 1 to 4 hold for it, and an extension that fails leaves the old validity true. It is
 *    accepted only while the old validity lasts. Between the two there is no instant without a
 *    quorum of keys.
 * 8. *The holder is notified.* The timer wheel ends the lock a margin before its validity is over
 *    and aborts `lock.signal`. If timers are late, the signal reads the clocks itself when code
 *    asks it. After a step of the clocks the wheel needs one wake-up to notice, and wakes up four
 *    times a second while a lock is held.
 *
 * What else can be acquired is argued where it is: a lock that was handed over in `adopt.ts`, any
 * one of several keys in `pool.ts`, and readers beside each other in
 * `redis_node/scripts/readers.ts`.
 *
 * Read on in `lock_call.ts` and `waits.ts` (a call and what it waits for), `held_lock.ts`,
 * `renewal.ts`, `release.ts`, and in `lock.ts` and `lock_signal.ts` (the handle); the others stand
 * alone.
 *
 * `tests/simulation` checks the claim on every run (`mutual-exclusion`, `handle-truth`), and
 * `tests/simulation/support/mutations.ts` breaks the steps one by one to show that the checkers
 * notice.
 *
 * @module
 */
import { QuorumError } from "../errors.ts";
import { emit } from "../events.ts";
import { agreeByRaising } from "../fencing/fenced_attempt.ts";
import { counterHint } from "../fencing/token.ts";
import { Round, ROUNDS_MAX } from "../quorum/round.ts";
import { CONNECTING_MS_MAX, type RequestDetails } from "../quorum/quorum_node.ts";
import type { QueueTicket } from "../quorum/queue_ticket.ts";
import { expiryMarginMs } from "../time/validity.ts";
import { waitToAdopt } from "./adopt.ts";
import { HeldLock } from "./held_lock.ts";
import { holderOf, newValue } from "../holder.ts";
import { Lock } from "./lock.ts";
import type { LockCall } from "./lock_call.ts";
import { endWithout, noQuorum } from "./refusal.ts";
import { renew } from "./renewal.ts";
import { undoAttempt } from "./release.ts";
import { beginWait, noteFailed, waitForOthers } from "./waits.ts";

/**
 * Makes attempts until one wins the lock or the wait is over. A call that may wait queues up behind
 * the earlier calls of this client and their locks (`local_queues.ts`).
 *
 * @returns The lock; `undefined` if others hold it and the call was only to try.
 * @throws {LockHeldError} If others hold it when the wait is over.
 * @throws {QuorumError} If too few nodes answered the last attempt.
 * @throws The reason of the call's signal, or a {@linkcode RedlockError} if the client is closed.
 */
export async function acquire(call: LockCall): Promise<Lock | undefined> {
  const { client, client: { attemptGate }, settings } = call;
  let held: HeldLock | undefined;
  client.openCalls++;
  try {
    for (;;) {
      for (let wait; (wait = beginWait(call));) await wait;
      if (!attemptGate.enter()) await waitForRoom(call);
      const round = beginAttempt(call);
      const timeoutMs = Math.min(settings.nodeTimeoutMs, settings.validityMs);
      // step 2: until votes are decided
      await round.ask(call.verb, timeoutMs, settings.signal);
      if (round.counts) await agreeByRaising(round, settings);
      attemptGate.leave();
      held = conclude(call, round);
      if (held) break;
      noteFailed(call, round);
      if (call.pool?.chooseAnother(round)) continue;
      await (call.adopts ? waitToAdopt(call) : waitForOthers(call));
    }
  } catch (error) {
    const pausing = error instanceof QuorumError && client.noteNoQuorum();
    // not without a pause: the listener is to be called in the tick of the last answer
    if (pausing) await pausing;
    return endWithout(call, error);
  } finally {
    client.endCall();
  }
  call.throwIfEnded(held.round); // not as `denied`: `acquired` was emitted
  const lock = new Lock(held as never);
  // `runUsing` delivers it, and releases it, even if the routine drops it
  if (call.purpose !== "use") held.deliver(lock);
  return lock;
}

/**
 * Waits while the client has too many attempts under way. If the call may not wait for others, it
 * waits for these without a limit, because each of them ends in bounded time.
 *
 * @throws {QuorumError} If the wait is over.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
async function waitForRoom(call: LockCall): Promise<void> {
  const { client: { attemptGate }, waitMs, settings: { signal } } = call;
  if (await attemptGate.wait(waitMs > 0 ? call.leftMs() : Infinity, signal)) return;
  call.throwIfEnded();
  throw noQuorum(call, [], `, because ${ROUNDS_MAX} other attempts of this client were under way`);
}

/** Begins an attempt, before its first byte is sent. */
function beginAttempt(call: LockCall): Round {
  const { client, settings: { ttlMs, label, fencing }, pool } = call;
  const ticket = call.waiter?.nextTicket(call.leftMs());
  const details = detailsOf(call, ticket);
  // mutation: one-value-for-all-attempts
  // mutation: adopted-value-kept
  const value = newValue(client.wheel, label);
  const keys = pool ? [pool.key] : call.keys;
  const round = new Round(client, keys, value, ttlMs, details); // step 1: it reads the clocks
  if (fencing) round.counts = { last: [], floor: 0 };
  call.entersAtOnce = false;
  call.attempts++;
  round.connectingMs = call.waitMs === 0 ? CONNECTING_MS_MAX : call.leftMs(round.sinceMs);
  round.seeksGrant = call.waitMs === 0 && !call.adopts;
  return round;
}

/**
 * The details of an attempt, which a plain one does without. The first for a pool is plain, too, so
 * that an idle pool costs what a lock costs.
 */
function detailsOf(call: LockCall, ticket: QueueTicket | undefined): RequestDetails | undefined {
  const { client, settings, mode, adopts, entersAtOnce } = call;
  const { fencing, restartGuardMs: guardMs } = settings;
  const pool = call.attempts > 0 || ticket ? call.pool?.details : undefined;
  if (!ticket && !pool && !mode && !adopts && !fencing && guardMs === 0) return undefined;
  return {
    ticket,
    pool,
    mode,
    guardMs,
    replaces: adopts?.value,
    entersAtOnce,
    counterHint: fencing ? counterHint(client.wheel.clock.wallMs()) : undefined,
  };
}

/**
 * Looks at the clocks, and accepts the lock or undoes the attempt. If the call has ended, the lock
 * does, too. It is not accepted in its cooldown, nor if the counters of the nodes do not agree on a
 * fencing token.
 */
function conclude(call: LockCall, round: Round): HeldLock | undefined {
  const { client, settings: { validityMs, onEvent }, pool, adopts } = call;
  if (adopts) round.ttlMs = Math.max(round.ttlMs, adopts.ttlMs); // it shortens no TTL
  const { decision, keys, counts } = round;
  const { elapsedMs } = round; // step 3: it looks at the clocks
  // else its holder would be notified of the end at once
  // mutation: granted-too-late
  const inTime = validityMs - elapsedMs > expiryMarginMs(validityMs);
  // mutation: accepted-in-its-cooldown
  const cools = !adopts && client.cooldownLeftMs(keys) > 0; // it may have begun meanwhile
  const counted = !counts || counts.token !== undefined;
  const granted = decision === "granted" && inTime && !cools && counted;
  // mutation: failed-attempt-stays
  if (!granted) undoAttempt(round); // step 5: before its listener can ask again
  if (onEvent) {
    const { votes, ageMs } = round;
    const { resources, attempts: attempt } = call;
    emit(onEvent, { type: "attempt", resources, attempt, granted, votes, elapsedMs: ageMs });
  }
  if (!granted) return undefined;
  const held = new HeldLock(call, round, renew);
  pool?.noteWon();
  client.localQueues.won(call, held, round);
  if (onEvent) reportAcquired(call, held);
  if (call.ended) held.withdraw(); // in the tick of its grant, or by a listener
  return held;
}

/** Emits that a call has its lock. */
function reportAcquired(call: LockCall, held: HeldLock): void {
  const { settings: { onEvent }, pool, mode, attempts, adopts } = call;
  const { resources, round: { value, votes } } = held;
  emit(onEvent!, {
    type: "acquired",
    resources,
    holder: holderOf(value),
    ...(pool && { anyOf: call.resources }),
    ...(adopts && { adoptedFrom: holderOf(adopts.value) }),
    ...(mode && { mode }),
    votes,
    attempts,
    elapsedMs: call.elapsedMs,
    remainingMs: held.remainingMs(),
  });
}
