/**
 * A lock while it is held: its validity, which is read from the clocks, and its end. The numbers of
 * steps are those of the argument in `acquire.ts`.
 *
 * **When is it held?** While it is neither released, handed over nor lost, and less time than its
 * validity has elapsed since its start ({@linkcode HeldLock.remainingMs}).
 *
 * **How does it end?** Once, by one of three methods; until then it may be extended (`renewal.ts`):
 *
 * | end        | by                         | its keys are                       |
 * | ---------- | -------------------------- | ---------------------------------- |
 * | `release`  | its holder                 | deleted, with `atLeastMs` later    |
 * | `handOver` | its holder                 | left to the next holder            |
 * | `lose`     | whatever ends it otherwise | taken back, mostly after their TTL |
 *
 * Before its caller has it (`deliver`), it is not in the timer wheel, so nothing ends it but its
 * call, by `withdraw`: if that has been aborted, or its client closed.
 *
 * **What aborts the signal?** In `using()` the signal of the call ({@linkcode HeldLock.abort}; the
 * lock stays held), and else the loss: by the timer wheel when the validity is about to be over
 * (`onDue`), by code that reads the signal later than that (`loseIfOver`), by an extension that a
 * majority denied, when the client closes (`onClosed`), and in place of an extension if nobody has
 * the handle any more.
 *
 * **Where is the program notified?** In the async context of the call that won the lock, a
 * microtask after the loss; if the lock has no listener, in that of the code that first read its
 * signal. Code that reads the signal earlier is notified at once.
 *
 * @module
 */
import { LockLostError, type LockLostReason } from "../errors.ts";
import { emit, type VoteEvent } from "../events.ts";
import {
  keysGone,
  lockName,
  lossError,
  lostError,
  nodeErrors,
  quorumError,
  reasonOf,
  thrownHere,
  voteCount,
} from "../messages.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";
import type { ClientState } from "./client_state.ts";
import type { HandedOver } from "./hand_over_token.ts";
import { holderOf } from "../holder.ts";
import type { LockCall } from "./lock_call.ts";
import { deleteFormer, releaseOf, takeBack, undoAttempt } from "./release.ts";
import { keepsSignals } from "../time/clock.ts";
import { OwnContext } from "../time/own_context.ts";
import { TimerEntry } from "../time/timer_wheel.ts";
import { lostText, warnOnce } from "../console_warnings.ts";
import { expiryMarginMs, validityMs } from "../time/validity.ts";

/** The share of the TTL after which a lock extends itself. */
const EXTEND_AFTER_FACTOR = 1 / 3;
/**
 * If the process stood still, or the clocks were stepped, for this share of the validity or longer,
 * the lock is said to be lost because of that.
 */
const DELAY_FACTOR = 1 / 4;

/**
 * One lock. It waits in the timer wheel for its next extension or the end of its validity,
 * whichever is first.
 */
export class HeldLock extends TimerEntry {
  /** The client that holds it. */
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  /** The round that won it. */
  readonly round: Round;
  /** How often it was extended. */
  extensions = 0;
  /**
   * How it ended: released, handed over, or lost for a reason. Set once, and never cleared (step
   * 6).
   */
  #end: "released" | "handed over" | LockLostError | undefined;
  /** The start of the round that won it, or of the last extension, and the TTL from then on. */
  #startMs: number;
  #ttlMs: number;
  /**
   * The try to extend that says why the lock is lost, if it is: the last that has failed since the
   * last extension, or else the first that is under way. If there is one, the next goes ahead of
   * the crowd.
   */
  lastTry: Round | undefined;
  /** What extends it, if it extends itself, and when next, by the continuous clock. */
  readonly #extend: ((lock: HeldLock) => void) | undefined;
  #extendMs = Infinity;
  /**
   * The handle, if the lock ends when nobody has that any more; once the handle has a signal, which
   * it keeps alive, that signal.
   */
  #handle: WeakRef<object> | undefined;
  #released: Promise<boolean> | undefined;
  // What follows is set on few locks, so all others have no place for it.
  /**
   * What the program is called in: made by the call if it has a listener, else when the signal is
   * first read.
   */
  declare context?: OwnContext;
  /** Aborts the signal, once that was read and until it has aborted. */
  declare controller?: AbortController | undefined;
  /** Why the signal aborts, or has aborted. */
  declare aborted?: { readonly reason: unknown };
  /** That it was lost before its release, if only the answers to that have shown it. */
  declare lostUnnoticed?: LockLostError;

  /**
   * @param call The call that won it.
   * @param round The round that won it.
   * @param extend If it extends itself, called while it is {@linkcode active} when that is due.
   */
  constructor(call: LockCall, round: Round, extend: (lock: HeldLock) => void) {
    super();
    const { client, settings, resources, pool, purpose } = call;
    const { ttlMs, autoExtend = purpose === "use", onEvent } = settings;
    this.client = client;
    this.settings = settings;
    this.resources = pool ? Object.freeze([resources[pool.place]]) : resources;
    this.round = round;
    // mutation: validity-from-the-answers-on
    this.#startMs = round.startMs;
    this.#ttlMs = ttlMs;
    this.#extend = autoExtend ? extend : undefined;
    if (onEvent) this.context = new OwnContext();
  }

  /** What people are shown; a lock that nobody has ended by now has run out. */
  get state(): "held" | "released" | "handed over" | "lost" {
    const end = this.#end;
    if (typeof end === "string") return end;
    return this.held ? "held" : "lost";
  }

  /** Whether it is neither released, handed over nor lost yet. Its validity may be over. */
  get active(): boolean {
    return this.#end === undefined;
  }

  /** Whether a quorum of nodes is certain to hold the keys at this moment (step 3). */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /** When the validity is over, by the continuous clock. */
  get endMs(): number {
    return this.#startMs + this.#validityMs;
  }

  /** How long it is valid from its start, or its last extension, on. */
  get #validityMs(): number {
    return validityMs(this.#ttlMs, this.settings.driftFactor);
  }

  /**
   * When the TTL is over, by the continuous clock: until then a quorum of nodes has the keys, give
   * or take the drift.
   */
  get keysEndMs(): number {
    return this.#startMs + this.#ttlMs;
  }

  /**
   * What is left of the validity, in milliseconds: 0 when it is over, or the lock was released,
   * handed over or lost.
   *
   * @param nowMs This moment, by the continuous clock.
   */
  remainingMs(nowMs: number = this.#nowMs): number {
    return this.#end ? 0 : Math.max(this.endMs - nowMs, 0);
  }

  get #nowMs(): number {
    return this.client.wheel.continuous.nowMs();
  }

  /**
   * Makes the signal of its handle, which aborts when the lock is lost. It is made when it is first
   * read, because many callers never do. If the handle may be forgotten, the first is a lent one,
   * and its handle keeps both (`lock_signal.ts`).
   */
  newSignals(): readonly [AbortSignal, AbortSignal?] {
    this.context ??= new OwnContext();
    const { signal } = this.controller = new AbortController();
    this.look();
    if (!this.#handle || !this.active) return [signal];
    const lent = AbortSignal.any([signal]);
    this.#handle = new WeakRef(lent);
    return [lent, signal];
  }

  /** Ends the lock if its time is over, and aborts the signal once there is a reason to. */
  look(): void {
    const reason = this.loseIfOver();
    if (reason) this.aborted ??= { reason };
    const { controller, aborted } = this;
    if (!controller || !aborted) return;
    this.controller = undefined; // first, because a runtime may read the signal while it aborts it
    controller.abort(aborted.reason);
    // In Node 24, a lent signal without a listener aborts when it is read, if its own is there yet.
    Reflect.get(this.#handle?.deref() ?? {}, "aborted");
  }

  /**
   * Ends the lock as lost if its validity is over and the timer is late (step 8).
   *
   * @returns Why the lock was lost, if it was.
   */
  loseIfOver(): LockLostError | undefined {
    if (!this.#end && !this.held) this.#runOut();
    return this.#end instanceof LockLostError ? this.#end : undefined;
  }

  /** Aborts the signal for a reason of the caller; the lock itself stays held. */
  abort(reason: unknown): void {
    this.aborted ??= { reason };
    this.inContext(() => this.look());
  }

  /**
   * Calls what may call the program, in the async context of the call that won the lock, if
   * anything remembers that.
   */
  inContext(call: () => void): void {
    if (this.context) this.context.run(call);
    else call();
  }

  /**
   * Its caller gets it, or the routine that uses it: from here on it waits in the timer wheel.
   *
   * @param handle What the caller gets. If the lock extends itself, it ends in place of an
   * extension once this and its signal are garbage, because nobody could release it then. But not
   * in Deno before 2.8, which collects a lent signal even if it has listeners, nor in workers whose
   * timers are numbers, which may do so.
   */
  deliver(handle?: object): void {
    if (handle && this.#extend && keepsSignals()) this.#handle = new WeakRef(handle);
    this.#scheduleExtension(this.#startMs);
  }

  /**
   * If it extends itself, has it do so next when a third of its TTL has passed since its start or
   * an extension; earlier if less than two thirds are left then, so that short extensions by its
   * holder put none off.
   */
  #scheduleExtension(startMs: number): void {
    const { ttlMs } = this.settings;
    const fromMs = Math.min(startMs, this.keysEndMs - ttlMs);
    this.extendAt(this.#extend ? fromMs + ttlMs * EXTEND_AFTER_FACTOR : Infinity);
  }

  /** Has it extended at a time of the continuous clock. */
  extendAt(dueMs: number): void {
    this.#extendMs = dueMs;
    this.#schedule();
  }

  /** Why no further extension is allowed, if none is. */
  get exhausted(): Error | undefined {
    const { extensions, settings: { extensionsMax } } = this;
    if (extensions < extensionsMax) return undefined;
    const times = extensions === 1 ? "once" : `${extensions} times`;
    return new Error(`it was extended ${times}, the most that 'extensionsMax' allows`);
  }

  /**
   * Looks at the clocks, and takes the validity of an extension that a quorum granted in time,
   * unless the old one reaches further (step 7).
   *
   * @returns Whether the extension succeeded.
   */
  accept(round: Round): boolean {
    const { decision, ttlMs, startMs } = round;
    // mutation: extended-after-its-end
    const extended = decision === "granted" && this.held && !this.exhausted;
    if (!extended) {
      // given up, or older than what succeeded: then it does not say why no later one does
      const tellsNothing = decision === "open" || startMs < this.#startMs;
      if (!tellsNothing) this.lastTry = round;
      else if (this.lastTry === round) this.lastTry = undefined;
      return false;
    }
    this.lastTry = undefined;
    this.extensions++;
    if (startMs + validityMs(ttlMs, this.settings.driftFactor) > this.endMs) {
      // mutation: extended-validity-from-the-answers-on
      this.#startMs = startMs;
      this.#ttlMs = ttlMs;
    }
    this.#scheduleExtension(startMs);
    return true;
  }

  /**
   * Ends the lock as lost: `held` is false from here on, the keys are taken back (step 5), and the
   * signal aborts.
   */
  lose(reason: LockLostReason, cause: Error): void {
    if (this.#end) return;
    const { votes } = this.lastTry ?? this.round;
    this.#endAs(lossError("keep", this.resources, votes, reason, cause));
    this.#beginCooldown();
    if (reason === "gone" || reason === "closed") this.#takeBack();
    else this.onDue(); // it waits for the end of their TTL
    this.inContext(() => {
      this.look();
      this.#emitLost(reason, cause);
    });
  }

  /**
   * Its caller does not get it: deletes its keys, or gives those of an adopted lock their former
   * value back, so that another call can adopt it.
   */
  withdraw(): void {
    if (this.round.replaces === undefined) {
      this.release(0).catch(() => {}); // an event reports the failure
    } else {
      undoAttempt(this.round); // first, so that its end does not delete the former value
      this.#handOver();
    }
  }

  /**
   * Ends the lock and deletes its keys, or has them live on until it is old enough. A second call
   * returns the result of the first.
   *
   * @param atLeastMs How old that is, in milliseconds of the monotonic clock: a wall clock that
   * steps ahead must not shorten it.
   */
  release(atLeastMs = this.settings.atLeastMs): Promise<boolean> {
    return this.#released ??= this.#release(atLeastMs);
  }

  /**
   * Ends the lock and leaves its keys, so that another client can adopt it (`adopt.ts`). A release
   * does nothing from then on.
   *
   * @returns What the other client must know.
   * @throws {LockLostError} If it is not held.
   * @throws {TypeError} If it is in shared mode, or a node does not support adopting.
   */
  handOver(): HandedOver {
    const { resources, round } = this;
    const unable = this.client.nodes.find(({ lacks }) => lacks?.adopt); // nobody could have it
    const why = round.mode ? "it is in shared mode" : unable && `${unable.name} cannot adopt`;
    if (why) throw new TypeError(`Cannot hand over ${lockName(resources)} as ${why}`);
    this.throwIfOver("hand over");
    return this.#handOver();
  }

  #handOver(): HandedOver {
    const { resources, settings: { onEvent, atLeastMs }, round } = this;
    // mutation: giver-keeps-holding
    this.#endAs("handed over");
    this.#released = Promise.resolve(false);
    const { value, ttlMs, ageMs: heldMs } = round;
    const holder = holderOf(value);
    if (onEvent) {
      this.inContext(() => emit(onEvent, { type: "handed-over", resources, holder, heldMs }));
    }
    const keptMs = Math.max(Math.ceil(atLeastMs - heldMs), 0);
    return { value, ttlMs, keptMs, resources };
  }

  /** @param won See {@linkcode LocalQueues.lockEnded}. */
  #leaveLocalQueue(won?: Round): void {
    this.client.localQueues.lockEnded(this.round.keys, this, won);
  }

  /** @throws {LockLostError} If the lock was lost, or its holder has ended it. */
  throwIfOver(action: string): void {
    const lost = this.loseIfOver();
    if (lost) throw thrownHere(lost);
    if (this.active) return;
    const cause = new Error(`it was ${this.#end}`);
    throw lostError(action, this.resources, this.round.votes, "released", cause);
  }

  override onDue(): void {
    const nowMs = this.#nowMs;
    if (this.#end) {
      return nowMs < this.keysEndMs ? this.#waitUntil(this.keysEndMs) : this.#takeBack();
    }
    if (this.remainingMs(nowMs) <= expiryMarginMs(this.#validityMs)) return this.#runOut();
    // mutation: extended-by-monotonic-clock-alone
    if (this.#extendMs > nowMs) return this.#schedule();
    if (this.#handle && !this.#handle.deref()) {
      return this.lose("forgotten", new Error("nobody has the lock or its signal any more"));
    }
    this.extendAt(Infinity); // first, because a node that is asked may close the client
    this.inContext(() => this.#extend!(this));
  }

  override onStepped(): void {
    this.onDue();
  }

  override onClosed(): void {
    if (this.#end) return this.#takeBack();
    this.lose("closed", new Error("the lock client was closed"));
  }

  /**
   * Takes the keys of a lost lock back, and waits for no answer: when their TTL is over, unless
   * they are gone or the client closes. Until then they keep others out while the holder, which is
   * notified of the end only now, stops working. Most keys are gone by then. But an extension
   * without answers may have prolonged some, and a node that hung may set one late.
   */
  #takeBack(): void {
    const { client: { wheel }, round } = this;
    wheel.cancel(this);
    // mutation: doubtful-extension-stays
    takeBack(round, releaseOf(round, this.settings.atLeastMs));
  }

  #runOut(): void {
    // mutation: end-aborts-nothing
    this.lose(...this.#whyOver());
  }

  /** Why its validity has ended: the reason for programs, and the same in detail. */
  #whyOver(): [reason: LockLostReason, cause: Error] {
    const { exhausted, lastTry } = this;
    if (exhausted && this.#extend) return ["extensions-max", exhausted];
    const { stoodMs, steppedMs } = this.client.wheel.delayedSince(this.#startMs);
    const ended = "its validity has ended";
    if (Math.max(stoodMs, steppedMs) >= this.#validityMs * DELAY_FACTOR) {
      const stepped = steppedMs > stoodMs;
      const why = stepped
        ? `the wall clock was stepped ahead by ${Math.round(steppedMs)} ms, or the machine slept`
        : `the process stood still for about ${Math.round(stoodMs)} ms`;
      return [stepped ? "clock-stepped" : "stalled", new Error(`${ended}, because ${why}`)];
    }
    if (exhausted || !lastTry) return ["expired", new Error(ended)];
    const { votes, decision } = lastTry;
    const before = `${ended} before an extension succeeded`;
    if (decision === "granted") {
      const late = votes.filter(({ outcome }) => outcome === "granted");
      const names = late.map(({ node, elapsedMs }) => `${node} (${Math.round(elapsedMs)} ms)`);
      const cause = new Error(`${before}: too late were the answers of ${names.join(", ")}`);
      return ["answers-late", cause];
    }
    const why = voteCount(votes, this.client.nodes.length, "extend") + reasonOf(votes);
    return ["extend-failed", new Error(`${before}: ${why}`, { cause: nodeErrors(votes) })];
  }

  /** Waits in the timer wheel for the end of the validity or the next extension. */
  #schedule(): void {
    if (this.#end) return;
    const notifyMs = this.endMs - expiryMarginMs(this.#validityMs);
    this.#waitUntil(Math.min(notifyMs, this.#extendMs));
  }

  /** Waits in the timer wheel until a time of the continuous clock. */
  #waitUntil(dueMs: number): void {
    const { wheel } = this.client;
    wheel.schedule(this, dueMs - wheel.continuous.steppedMs);
  }

  /**
   * Ends the lock: it is not held from here on (step 6), and no node sends anything more for it
   * that could set a key. What an adoption has not replaced goes, unless that was undone. The next
   * call of this client for the keys may ask.
   */
  #endAs(end: "released" | "handed over" | LockLostError): void {
    const { client: { wheel }, round } = this;
    this.#end = end;
    // nothing aborts it now; but without a handle, in `using`, the signal of the call may
    if (this.#handle && typeof end === "string") this.controller = undefined;
    wheel.cancel(this);
    // mutation: former-value-stays
    if (round.replaces !== undefined && round.wanted) deleteFormer(round);
    round.cancel();
    // mutation: lost-lock-blocks-its-client
    if (end !== "released") this.#leaveLocalQueue(round); // else when its release is answered
  }

  async #release(atLeastMs: number): Promise<boolean> {
    const { client, settings } = this;
    // mutation: held-after-release
    if (this.active) this.#endAs("released"); // step 5: before any key is deleted
    client.openCalls++; // so that nodes close after they have answered it
    // or until the client closes: then all are sent
    if (!client.releaseGate.enter()) await client.releaseGate.wait(Infinity);
    const round = releaseOf(this.round, atLeastMs);
    await round.ask("release", settings.nodeTimeoutMs);
    client.endCall();
    client.releaseGate.leave();
    return this.#concludeRelease(round, atLeastMs);
  }

  /** Apart from the function that waits, because the locals of that one are on the heap. */
  #concludeRelease(round: Round, atLeastMs: number): boolean {
    const { client, settings: { onEvent }, resources } = this;
    const wasLost = this.#end !== "released"; // before it was to be released
    const leftMs = wasLost ? 0 : this.endMs - round.startMs;
    client.localQueues.noteReleased(round.keys, round.hasWaiters);
    this.#leaveLocalQueue();
    // Too few nodes answered, or the end of the client cut the round short.
    if (leftMs > 0 && (round.failedByMajority || !round.decided)) {
      this.#beginCooldown(leftMs);
      const error = quorumError("release", resources, round.votes, client.nodes.length);
      if (onEvent) emit(onEvent, { type: "release-failed", ...this.#fieldsOf(round), error });
      throw error;
    }
    // with fewer denials, the keys were not gone before
    const confirmed = round.decision === "granted" || leftMs > 0 && !round.deniedByMajority;
    if (!confirmed && !wasLost) this.#noteGone(round);
    if (onEvent) {
      const restMs = atLeastMs - (round.sinceMs - this.round.sinceMs);
      const keptMs = confirmed ? Math.max(restMs, 0) : 0;
      emit(onEvent, { type: "released", ...this.#fieldsOf(round), confirmed, keptMs });
    }
    return confirmed;
  }

  /** Its release has found that its keys were gone before. */
  #noteGone({ keys, votes }: Round): void {
    const { client: { nodes }, resources } = this;
    this.#beginCooldown();
    // Keys may have expired on the way, and a client that sends twice may have released it itself.
    if (this.endMs <= this.#nowMs || nodes.some(({ resends }) => resends)) return;
    const cause = keysGone(keys, ", as its release has shown");
    this.lostUnnoticed = lossError("keep", resources, votes, "gone", cause);
    this.#emitLost("gone", cause);
  }

  /** What both events about a release say. */
  #fieldsOf({ votes, ageMs: elapsedMs }: Round): VoteEvent & { readonly heldMs: number } {
    return { resources: this.resources, votes, elapsedMs, heldMs: this.round.ageMs };
  }

  /**
   * Starts the cooldown, because the lock was lost or no release of it was confirmed; no later
   * release ends it.
   */
  #beginCooldown(leftMs = 0): void {
    const { cooldownMs } = this.settings;
    if (cooldownMs === 0) return;
    this.client.beginCooldown(this.round.keys, leftMs + cooldownMs);
  }

  #emitLost(reason: LockLostReason, cause: Error): void {
    const { client, resources, round: { ageMs: heldMs }, settings: { onEvent } } = this;
    const event = { type: "lost", resources, reason, cause, heldMs } as const;
    if (onEvent) emit(onEvent, event);
    else warnOnce(client, lostText(event));
  }
}
