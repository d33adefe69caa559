/**
 * One call for a lock: what it asks for, how it waits, and how it ends without a lock.
 *
 * Before an attempt it waits until nothing is in its way ({@linkcode beginWait}): behind the
 * earlier calls of this client (`waiting/local_queues.ts`), and for the end of a cooldown. After an
 * attempt that failed it first waits for those who hold the lock ({@linkcode waitForOthers},
 * `waiting/queued_waiter.ts`).
 *
 * @module
 */
import { LockHeldError, type QuorumError } from "../errors.ts";
import { emit } from "../events.ts";
import { describeHolder } from "../holder.ts";
import {
  closedError,
  foreignKey,
  isHopeless,
  lockName,
  nodeErrors,
  quorumError,
  voteCount,
} from "../messages.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";
import { backoffMs } from "../time/backoff.ts";
import { pause } from "../time/pause.ts";
import type { Vote } from "../vote.ts";
import { keysName, readersName } from "../resources.ts";
import type { WaitingCall } from "../waiting/queued_waiter.ts";
import type { ClientState } from "./client_state.ts";
import type { HandedOver } from "./hand_over_token.ts";
import { HeldLock } from "./held_lock.ts";
import { Pool } from "./pool.ts";

/**
 * How often a call that may not wait tries again at most because several calls have split the
 * votes.
 */
const SPLIT_RETRIES_MAX = 4;
/**
 * The longest pause before an attempt after a split vote, as a multiple of the slowest round trip.
 * It is random, so one of the calls most likely asks a round trip earlier than the others.
 */
const SPLIT_PAUSE_FACTOR = 4;
/** The least of these longest pauses, in milliseconds: timers count whole ones. */
const SPLIT_PAUSE_MS_MIN = 8;

/**
 * What a lock is for: its caller gets it, or gets it if nobody else holds it, or a routine runs
 * while it is held.
 */
export type Purpose = "acquire" | "try" | "use";

/** A call for a lock. */
export class LockCall implements WaitingCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  /**
   * The name of its local queue: that of its keys, of all keys of a pool, or of readers of the
   * keys.
   */
  readonly localName: string;
  /** The name of its keys, in whatever order they were given. */
  readonly #nameOfKeys: string;
  /** How it chooses between its keys, if it locks any one of them. */
  readonly pool: Pool | undefined;
  /** What the lock is for. */
  readonly purpose: Purpose;
  /** How long it may wait, in milliseconds. */
  readonly waitMs: number;
  /** The lock that it adopts, if it does. */
  readonly adopts: HandedOver | undefined;
  /** Set if the lock is in shared mode. */
  readonly mode: "shared" | undefined;
  entersAtOnce = false;
  polls = 0;
  /** How many attempts were made. */
  attempts = 0;
  /** The last attempt that has failed. */
  last: Round | undefined;
  /**
   * Whether the vote of an attempt was split (some nodes granted, but too few) since the call began
   * or last paused because of that.
   */
  split = false;
  /** How often it paused because of a split vote. */
  retries = 0;
  /** When it began, by the monotonic clock. */
  readonly #sinceMs: number;

  /**
   * @param client The client.
   * @param settings The settings of the call.
   * @param resources The resources.
   * @param purpose To try is not to wait, whatever `waitMs` is; to use is to extend, unless
   * `autoExtend` is `false`.
   * @param adopts The lock that it adopts, if it does.
   */
  constructor(
    client: ClientState,
    settings: Settings,
    resources: readonly string[],
    purpose: Purpose,
    adopts?: HandedOver,
  ) {
    const { keyPrefix } = settings;
    this.client = client;
    this.settings = settings;
    this.resources = settings.onEvent ? Object.freeze(resources) : resources; // as in `Lock`
    this.keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.pool = settings.any ? new Pool(client, this.keys) : undefined;
    this.mode = settings.mode === "shared" ? "shared" : undefined;
    const name = this.#nameOfKeys = keysName(this.keys);
    this.localName = this.pool?.name ?? (this.mode ? readersName(name) : name);
    this.purpose = purpose;
    this.waitMs = purpose === "try" ? 0 : settings.waitMs;
    this.adopts = adopts;
    this.#sinceMs = client.wheel.clock.monotonicMs();
  }

  /** What it does, for messages. */
  get verb(): "acquire" | "adopt" {
    return this.adopts === undefined ? "acquire" : "adopt";
  }

  /**
   * The name of what it asks for now: of its keys, for readers and writers alike, or of one key of
   * a pool. Under it this client keeps its own locks, and remembers that others wait.
   */
  get name(): string {
    return this.pool?.key ?? this.#nameOfKeys;
  }

  /** For how long the call has lasted, in milliseconds. */
  get elapsedMs(): number {
    return this.client.wheel.clock.monotonicMs() - this.#sinceMs;
  }

  /** What is left of the wait, in milliseconds; who has just read the monotonic clock passes it. */
  leftMs(nowMs: number = this.client.wheel.clock.monotonicMs()): number {
    return this.waitMs - (nowMs - this.#sinceMs);
  }

  /**
   * How long until no resource is in its cooldown, or with a pool until one is not, in
   * milliseconds. 0 if the call adopts a lock: then only its holder changes, and no work begins.
   */
  get cooldownLeftMs(): number {
    const { client, keys, pool, adopts } = this;
    if (adopts) return 0;
    if (!pool) return client.cooldownLeftMs(keys);
    return Math.min(...keys.map((key) => client.cooldownLeftMs([key])));
  }

  /** Whether its signal was aborted or the client was closed. */
  get ended(): boolean {
    return this.client.closed || this.settings.signal?.aborted === true;
  }

  /** Throws the reason of the signal, or a {@linkcode RedlockError} if the client is closed. */
  throwIfEnded(asked: Round | undefined = this.last): void {
    if (!this.ended) return;
    this.settings.signal?.throwIfAborted();
    const name = lockName(this.resources, this.pool !== undefined);
    throw closedError(`${this.verb} ${name}`, this.resources, asked?.votes);
  }
}

/**
 * Begins to wait for one thing that is in the way of the next attempt. To be called again after
 * each wait.
 *
 * @returns The wait; `undefined` if nothing is in the way, and the call may ask.
 * @throws The refusal, if the wait of the call is over.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export function beginWait(call: LockCall): Promise<void> | undefined {
  call.throwIfEnded();
  if (call.entersAtOnce) return undefined; // in a cooldown, too: then the lock is not accepted
  // One that adopts a lock waits for no earlier call, because that may wait for that very lock.
  if (call.waitMs === 0 || call.adopts) return waitForCooldown(call);
  return waitForEarlier(call) ?? waitForCooldown(call) ?? waitToJoin(call);
}

/** Waits for the earlier calls of this client; without any, the call becomes the first. */
function waitForEarlier(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, localName, mode } = call;
  // A reader that joins nobody does not become the first: others of its client ask beside it.
  if (mode && !localQueues.get(localName) && !localQueues.isContended(call)) return undefined;
  return localQueues.claim(localName, call) ? undefined : waitBehind(call);
}

/**
 * Waits behind the earlier calls of this client: until it is the first, or until a reader before it
 * has the lock, so that it may enter beside that.
 */
async function waitBehind(call: LockCall): Promise<void> {
  const { localQueues } = call.client;
  const queue = localQueues.get(call.localName)!;
  if (!await localQueues.wait(queue, call, call.leftMs())) {
    const { owner } = queue;
    if (owner instanceof LockCall) call.last ??= owner.last; // why that waits
    throw refusal(call);
  }
  call.pool?.choose();
}

/** Waits until no resource is in its cooldown. */
function waitForCooldown(call: LockCall): Promise<void> | undefined {
  if (call.cooldownLeftMs === 0) return undefined;
  if (call.leftMs() <= 0) throw refusal(call);
  return pauseInCooldown(call);
}

/** Pauses until the cooldown of the resources is over, outside the nodes' queues. */
async function pauseInCooldown(call: LockCall): Promise<void> {
  const { client: { localQueues, wheel }, settings: { signal }, localName } = call;
  localQueues.removeWaiter(localName);
  await pause(wheel, Math.min(call.cooldownLeftMs, call.leftMs()), signal);
  call.pool?.choose();
}

/** If it expects other clients to wait, waits until nodes can notify it, to join their queues. */
function waitToJoin(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, localName } = call;
  const joins = localQueues.get(localName)?.waiter || localQueues.isContended(call);
  if (!joins || localQueues.waiterOf(call)) return undefined;
  return localQueues.takeWaiter(call)?.ready(call.leftMs());
}

/**
 * Notes that an attempt failed.
 *
 * @throws The refusal, if too many nodes refuse for good.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export function noteFailed(call: LockCall, last: Round): void {
  const { client: { nodes } } = call;
  const { decision, granted, failedByMajority } = last;
  call.last = last;
  if (decision === "refused" && granted > 0 && !failedByMajority) call.split = true;
  call.throwIfEnded();
  // a cooldown that has begun meanwhile is waited out
  if (isHopeless(last.votes, nodes.length) && call.cooldownLeftMs === 0) throw refusal(call);
}

/**
 * Waits after an attempt that failed, for those who hold the lock. Then {@linkcode beginWait}
 * follows.
 *
 * @returns Of a pool, the index of the key that a node has named, if one did.
 * @throws The refusal, if the wait is over.
 */
export function waitForOthers(call: LockCall): Promise<number | undefined> | undefined {
  const { client: { localQueues }, localName } = call;
  if (call.waitMs === 0 && call.split && call.retries < SPLIT_RETRIES_MAX) {
    return pauseAfterSplit(call);
  }
  if (call.leftMs() <= 0) throw refusal(call);
  // a reader may find that another call has become the first meanwhile, and waits behind that
  return localQueues.claim(localName, call) ? waitAsFirst(call) : undefined;
}

/** Waits as the first of its client: for news of the nodes, or it polls. */
async function waitAsFirst(call: LockCall): Promise<number | undefined> {
  const { client: { localQueues, wheel }, resources, settings, last } = call;
  const { onEvent, signal } = settings;
  const waiter = localQueues.takeWaiter(call);
  if (!waiter) {
    const delayMs = backoffMs(wheel.random, settings, call.polls++);
    await pause(wheel, Math.min(delayMs, call.leftMs()), signal);
    return undefined;
  }
  const { notifiedBy, place } = await waiter.wait(call.leftMs(), last!);
  if (onEvent && notifiedBy) emit(onEvent, { type: "woken", resources, elapsedMs: call.elapsedMs });
  return place;
}

/**
 * Pauses after a split vote, before the call asks again, also if it may not wait: the other nodes
 * may have granted several others, each too few. Then nobody holds the lock, and one of those that
 * ask again gets it.
 */
export async function pauseAfterSplit(call: LockCall): Promise<undefined> {
  const { client: { wheel }, settings: { signal, nodeTimeoutMs }, last } = call;
  // A process that stood still has measured that, not the way to a node.
  const roundTripMs = Math.min(last!.slowestMs, nodeTimeoutMs);
  const longestMs = Math.max(roundTripMs * SPLIT_PAUSE_FACTOR, SPLIT_PAUSE_MS_MIN);
  call.split = false;
  call.retries++;
  await pause(wheel, longestMs * wheel.random.fraction(), signal);
}

/**
 * The error of a call whose wait is over.
 *
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export function refusal(call: LockCall): LockHeldError | QuorumError {
  call.throwIfEnded();
  const { last } = call;
  const failed = last && (last.failedByMajority || last.decision === "granted");
  if (!call.adopts && (!failed || call.cooldownLeftMs > 0)) return heldByOthers(call);
  const { decision, counts, votes } = last!;
  if (decision !== "granted") return noQuorum(call, votes, "");
  // a quorum granted it, and it was not accepted
  const unsettled = counts !== undefined && counts.token === undefined;
  const why = unsettled ? "no fencing token was agreed on" : "too late for its validity";
  return noQuorum(call, votes, `, but ${why}`);
}

/** The error of a call that too few nodes answered, and why there are no more votes, if so. */
export function noQuorum(call: LockCall, votes: readonly Vote[], why: string): QuorumError {
  const { client: { nodes }, resources, pool, verb } = call;
  const note = why + waitedText(call);
  return quorumError(verb, resources, votes, nodes.length, note, pool !== undefined);
}

/** `; waited 3 ms`; nothing if the call may not wait. */
function waitedText({ waitMs, elapsedMs }: LockCall): string {
  return waitMs === 0 ? "" : `; waited ${Math.round(elapsedMs)} ms`;
}

function heldByOthers(call: LockCall): LockHeldError {
  const { client: { nodes, localQueues }, resources, last, pool } = call;
  const ticket = localQueues.get(call.localName)?.waiter?.ticket;
  const own = ownHold(call);
  const value = own ? own.round.value : ticket?.holderValue;
  const holders = value === undefined ? [] : [describeHolder(value)];
  const remainingMs = own ? undefined : ticket?.remainingMs;
  const votes = last?.votes ?? [];
  const parts = [obstacle(call, own, holders[0]?.label) + waitedText(call)];
  if (call.cooldownLeftMs === 0) {
    if (remainingMs !== undefined) parts.push(keyText(resources, remainingMs));
    if (votes.length > 1) parts.push(voteCount(votes, nodes.length));
  }
  const message = `Cannot acquire ${lockName(resources, pool !== undefined)}: ${parts.join("; ")}`;
  const cause = nodeErrors(votes);
  const waiters = ticket?.queueLength;
  return new LockHeldError(message, { resources, votes, cause, waiters, holders, remainingMs });
}

/** What is in the way of a call. */
function obstacle(
  { pool, mode, last, resources, settings, cooldownLeftMs }: LockCall,
  own: HeldLock | undefined,
  label: string | undefined,
): string {
  if (cooldownLeftMs > 0) {
    const what = pool ? "each is held or" : "it is";
    return `${what} in its cooldown ('cooldownMs') for another ${Math.ceil(cooldownLeftMs)} ms`;
  }
  if (own) {
    const reader = mode ? "a writer waits for that" : "a reader cannot become the writer";
    const [how, rule] = own.round.mode
      ? [" in shared mode", reader]
      : ["", "locks are not reentrant"];
    const what = own.resources.length === resources.length ? "it" : lockName(own.resources);
    const heldMs = Math.round(own.round.ageMs);
    return `another call of this client has held ${what}${how} for ${heldMs} ms, and ${rule}`;
  }
  if (!last?.votes.length) return "earlier calls of this client are still waiting for it";
  if (pool) return "each of them is held, or others compete for it";
  if (!last.deniedByMajority) return "others hold it or compete for it";
  if (label === undefined) return "someone else holds it";
  return label === settings.label
    ? `this process, or one with its label (${label}), holds it`
    : `someone else (${label}) holds it`;
}

/** How long the key in the way lives. */
function keyText(resources: readonly string[], remainingMs: number): string {
  const name = resources.length === 1 ? "its key" : "one of their keys";
  const state = foreignKey(remainingMs) ??
    `expires in ${Math.ceil(remainingMs)} ms unless it is extended`;
  return `${name} ${state}`;
}

/**
 * The lock of this client on all resources of the call, or on one of them; in a pool, one says
 * nothing.
 */
function ownHold(call: LockCall): HeldLock | undefined {
  const { client: { localQueues }, pool, keys, name } = call;
  if (pool && keys.length > 1) return undefined;
  const ownerOf = (name: string) => localQueues.get(name)?.owner;
  // a reader keeps another out, if a writer waits for it
  const owners = [ownerOf(name), localQueues.reader(name), ...keys.map(ownerOf)];
  return owners.find((owner) => owner instanceof HeldLock);
}
