/**
 * The lock client: the algorithm over nodes of any kind, without a network of its own.
 *
 * @module
 */
import { Acquisition } from "./lock/acquire.ts";
import { defineConsoleView } from "./console_view.ts";
import { closedError, lockName } from "./errors.ts";
import type { HealthReport } from "./health/report.ts";
import type { HeldLock } from "./lock/held_lock.ts";
import { inspect, type Inspection } from "./lock/inspection.ts";
import { type FencedLock, Lock } from "./lock/lock.ts";
import { askNode } from "./quorum/ask_node.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import { checkResources, type RedlockOptions, resolveOptions, type Settings } from "./options.ts";
import { type ClientState, createClientState } from "./client_state.ts";
import { TimerWheel } from "./time/timer_wheel.ts";

/** Most nodes of one client: their seats are the bits of one small integer. */
export const NODES_MAX = 31;
/** Longest wait for a node's own `close`, in milliseconds; connections of ours take half a second at the most. */
const NODE_CLOSE_TIMEOUT_MS = 2_000;

/** What runs while a lock is held. */
export type Routine<T> = (lock: Lock) => Promise<T> | T;

/**
 * A client for distributed locks by the Redlock algorithm. {@linkcode createRedlock} makes one for Redis
 * servers; this constructor takes nodes of any kind.
 *
 * @example A job that runs in one place at a time
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(5);
 * await using redlock = createRedlock(nodes.addresses);
 * const sum = await redlock.using("report", { ttlMs: 10_000 }, async (lock) => {
 *   lock.signal.throwIfAborted();
 *   return await Promise.resolve(1 + 1);
 * });
 * assert(sum === 2);
 * ```
 */
export class Redlock implements AsyncDisposable {
  readonly #client: ClientState;
  readonly #options: RedlockOptions;
  readonly #defaults: Settings;
  /** The options of the last call and what they came to: most callers pass the same ones each time. */
  #lastOptions: RedlockOptions = {};
  #lastSettings: Settings;
  #closing: Promise<void> | undefined = undefined;

  static {
    defineConsoleView(this.prototype, "Redlock", (redlock) => {
      const { closed, nodes, quorum } = redlock.#client;
      const state = closed ? "closed" : "open";
      return { state, nodes: nodes.map(({ name }) => name), quorum };
    });
  }

  /**
   * Makes a client of nodes that are there already.
   *
   * @param nodes The independent nodes that vote, at least one and at most 31.
   * @param options Defaults for every call.
   * @throws {TypeError} If there is no node, one is named twice or is none, or an option is unknown or of
   *   the wrong type.
   * @throws {RangeError} If there are too many nodes or an option is out of range.
   */
  constructor(nodes: readonly LockNode[], options?: RedlockOptions);
  constructor(nodes: readonly LockNode[], options: RedlockOptions = {}, wheel = new TimerWheel()) {
    checkNodes(nodes);
    this.#options = { ...options };
    this.#defaults = this.#lastSettings = resolveOptions("create lock client", options);
    this.#client = createClientState(wheel, [...nodes], options.onEvent);
  }

  /**
   * Acquires a lock, waiting for it up to `waitMs`.
   *
   * @param resource What to lock; of several all or none are locked.
   * @param options In place of the client's own.
   * @returns The lock.
   * @throws {LockHeldError} If others hold it when the wait is over.
   * @throws {QuorumError} If too few nodes answered in the last attempt before the wait was over.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If the resource is none, or an option is unknown or of the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  acquire(
    resource: string | readonly string[],
    options: RedlockOptions & { fencing: true },
  ): Promise<FencedLock>;
  /** Does the same without a fencing token, or with one of the client's own options. */
  acquire(resource: string | readonly string[], options?: RedlockOptions): Promise<Lock>;
  async acquire(resource: string | readonly string[], options?: RedlockOptions): Promise<Lock> {
    return new Lock(await this.#acquisition(resource, options, false).acquire());
  }

  /**
   * Makes one attempt at a lock.
   *
   * @param resource What to lock; of several all or none are locked.
   * @param options In place of the client's own; `waitMs` says nothing here.
   * @returns The lock, or `undefined` where somebody else holds it, or this client lets it be (`cooldownMs`).
   * @throws {QuorumError} If too few nodes answered.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If the resource is none, or an option is unknown or of the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  tryAcquire(
    resource: string | readonly string[],
    options: RedlockOptions & { fencing: true },
  ): Promise<FencedLock | undefined>;
  /** Does the same without a fencing token, or with one of the client's own options. */
  tryAcquire(
    resource: string | readonly string[],
    options?: RedlockOptions,
  ): Promise<Lock | undefined>;
  async tryAcquire(
    resource: string | readonly string[],
    options?: RedlockOptions,
  ): Promise<Lock | undefined> {
    const acquisition = this.#acquisition(resource, options, false);
    await acquisition.attempt();
    const held = acquisition.concludeAlone();
    if (held) await acquisition.drawToken(held);
    if (held) return new Lock(held);
    const refusal = acquisition.unanswered || this.#hears(options)
      ? acquisition.refusal()
      : undefined;
    if (acquisition.unanswered) throw refusal;
    return undefined;
  }

  /**
   * Acquires a lock, runs a routine while extending the lock for as long as it takes, and releases it. The
   * routine's own result or error always wins over a failing release.
   *
   * @param resource What to lock; of several all or none are locked.
   * @param options In place of the client's own.
   * @param routine What to do with the lock in hand; it should pass `lock.signal` on.
   * @returns What the routine returned.
   * @throws {LockLostError} If the lock was lost while the routine ran, and the routine ended well all the same.
   * @throws {LockHeldError} If others hold it when the wait is over.
   * @throws {QuorumError} If too few nodes answered in the last attempt before the wait was over.
   * @throws Whatever the routine throws.
   */
  async using<T>(
    resource: string | readonly string[],
    options: RedlockOptions & { fencing: true },
    routine: (lock: FencedLock) => Promise<T> | T,
  ): Promise<T>;
  /** Does the same without a fencing token, or with one of the client's own options. */
  async using<T>(
    resource: string | readonly string[],
    options: RedlockOptions | undefined,
    routine: Routine<T>,
  ): Promise<T>;
  /** Does the same with the client's own options. */
  async using<T>(resource: string | readonly string[], routine: Routine<T>): Promise<T>;
  async using<T>(
    resource: string | readonly string[],
    optionsOrRoutine: RedlockOptions | undefined | Routine<T>,
    maybeRoutine?: Routine<T> | ((lock: FencedLock) => Promise<T> | T),
  ): Promise<T> {
    const short = typeof optionsOrRoutine === "function";
    const routine = (short ? optionsOrRoutine : maybeRoutine) as Routine<T>;
    const options = short ? undefined : optionsOrRoutine;
    if (typeof routine !== "function") {
      throw new TypeError("Cannot acquire lock as 'routine' must be a function");
    }
    const held = await this.#acquisition(resource, options, true).acquire();
    return await runUsing(held, routine);
  }

  /**
   * Asks a quorum whether a resource is locked, and for how long at the most.
   *
   * @param resource One resource.
   * @param options In place of the client's own; `nodeTimeoutMs` and `keyPrefix` matter here.
   * @throws {QuorumError} If too few nodes answered to tell: it is never reported as free then.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If the resource is none.
   */
  async inspect(resource: string, options?: RedlockOptions): Promise<Inspection> {
    const settings = this.#settings("inspect lock", options);
    if (typeof resource !== "string" || resource === "") {
      throw new TypeError("Cannot inspect lock as 'resource' must be a non-empty string");
    }
    checkResources("inspect lock", resource);
    if (this.#client.closed) {
      throw closedError(`inspect ${lockName([resource])}`, [resource]);
    }
    const key = settings.keyPrefix + resource;
    return await inspect(this.#client, resource, key, settings.nodeTimeoutMs);
  }

  /**
   * Asks every node how it is set up, and tells what does not fit: a server that is listed twice, a replica, a
   * policy that may drop locks, clocks that are apart, and the like. Touches no key. A node that does not answer is a
   * finding and no error; each is waited for up to `nodeTimeoutMs` once it is connected.
   *
   * A report without findings is no proof: a server says nothing of the disk that it shares with another.
   *
   * @example A clock that is wrong
   * ```ts
   * import { assert } from "@std/assert";
   * import { createRedlock, formatHealthReport } from "@hasp/redlock";
   * import { startNodes } from "@hasp/redlock/testing";
   *
   * await using nodes = await startNodes(3);
   * await using redlock = createRedlock(nodes.addresses);
   * nodes.node(2).skewClock(60_000);
   * const report = await redlock.check();
   * assert(report.findings.some(({ code }) => code === "NODE_CLOCKS_APART"), formatHealthReport(report));
   * ```
   *
   * @param options In place of the client's own; `ttlMs`, `driftFactor`, `nodeTimeoutMs` and `keyPrefix` matter here.
   * @returns What the nodes tell of themselves, and what to do about it.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If an option is unknown or of the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  async check(options?: RedlockOptions): Promise<HealthReport> {
    const settings = this.#settings("check nodes", options);
    // Loaded when it is asked for: few programs ask, and those that only lock start faster without it.
    const { check } = await import("./health/check.ts");
    return await check(this.#client, settings);
  }

  /**
   * Closes the client. Calls that wait reject, locks that are held count as lost (their signals abort) and
   * are released, and connections are closed once that has been sent. Settles in bounded time; idempotent.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Closes the client at the end of `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { nodes, wheel, localQueues } = this.#client;
    this.#client.closed = true;
    localQueues.close();
    wheel.ref();
    // One turn of the event loop lets every call that was stopped send its clean-up before the nodes close.
    if (wheel.announceClose()) {
      await new Promise<void>((resolve) => void wheel.after(0, resolve));
    }
    await Promise.all(nodes.map((node) => {
      const close = async () => await node.close?.();
      return askNode(wheel, {}, close, NODE_CLOSE_TIMEOUT_MS);
    }));
    wheel.unref();
    wheel.close();
  }

  #acquisition(
    resource: string | readonly string[],
    options: RedlockOptions | undefined,
    autoExtend: boolean,
  ): Acquisition {
    const settings = this.#settings("acquire lock", options);
    const resources = checkResources("acquire lock", resource);
    if (settings.fencing) checkFencing(this.#client.nodes);
    return new Acquisition(this.#client, settings, resources, autoExtend);
  }

  #settings(attempt: string, options: RedlockOptions | undefined): Settings {
    if (options === undefined) return this.#defaults;
    if (!sameOptions(options, this.#lastOptions)) {
      this.#lastSettings = resolveOptions(attempt, options, this.#options);
      this.#lastOptions = { ...options };
    }
    return this.#lastSettings;
  }

  #hears(options: RedlockOptions | undefined): boolean {
    return (options?.onEvent ?? this.#defaults.onEvent) !== undefined;
  }
}

/** Makes a client whose time and randomness come from `wheel`, which its nodes may share. */
export function redlockOn(
  wheel: TimerWheel,
  nodes: readonly LockNode[],
  options: RedlockOptions,
): Redlock {
  const Constructor = Redlock as new (
    nodes: readonly LockNode[],
    options: RedlockOptions,
    wheel: TimerWheel,
  ) => Redlock;
  return new Constructor(nodes, options, wheel);
}

/** Runs `routine` with the lock, and gives the lock back whatever comes of it. */
async function runUsing<T>(held: HeldLock, routine: Routine<T>): Promise<T> {
  const { signal } = held.settings;
  const abort = () => held.abort(signal!.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const result = await routine(new Lock(held));
    const lost = held.lostError;
    if (lost) throw lost;
    return result;
  } finally {
    signal?.removeEventListener("abort", abort);
    await held.release().catch(() => {}); // an event has told; the TTL takes over
  }
}

/** Whether two sets of options hold the same, name by name. */
function sameOptions(one: RedlockOptions, other: RedlockOptions): boolean {
  if (typeof one !== "object" || one === null) return false;
  for (const name in one) {
    if (one[name as keyof RedlockOptions] !== other[name as keyof RedlockOptions]) return false;
  }
  for (const name in other) if (!(name in one)) return false;
  return true;
}

function checkFencing(nodes: readonly LockNode[]): void {
  const unable = nodes.find((node) => !node.raiseCounters);
  if (!unable) return;
  throw new TypeError(`Cannot acquire lock as node ${unable.name} does not support fencing tokens`);
}

function checkNodes(nodes: readonly LockNode[]): void {
  const attempt = "Cannot create lock client as";
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new TypeError(`${attempt} 'nodes' must be a non-empty array`);
  }
  if (nodes.length > NODES_MAX) {
    throw new RangeError(
      `${attempt} 'nodes' must have at most ${NODES_MAX} elements: current value is ${nodes.length}`,
    );
  }
  const names = new Set<string>();
  for (const node of nodes) {
    if (typeof node?.acquire !== "function" || typeof node.name !== "string") {
      throw new TypeError(`${attempt} 'nodes' must contain only objects that implement LockNode`);
    }
    if (names.has(node.name)) {
      throw new TypeError(`${attempt} two nodes have the name ${node.name}`);
    }
    names.add(node.name);
  }
}
