/**
 * The lock client: the algorithm over nodes of any kind, without a network of its own.
 *
 * @module
 */
import { acquire } from "./lock/acquire.ts";
import { LockCall, type Purpose } from "./lock/lock_call.ts";
import { defineConsoleView } from "./console_view.ts";
import { readToken } from "./lock/hand_over_token.ts";
import { inspect, type Inspection, undecided } from "./lock/inspection.ts";
import type { FencedLock, Lock, LockOf } from "./lock/lock.ts";
import { lead, type Routine, runUsing, withRoutine } from "./lock/using.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import type { QuorumNode } from "./quorum/quorum_node.ts";
import { LockOptions, type RedlockOptions, type Settings } from "./options.ts";
import { checkResources } from "./resources.ts";
import { ACTION, checkAbilities, checkNodes, takeNodes } from "./client_nodes.ts";
import { ClientState } from "./lock/client_state.ts";
import { processName } from "./process_name.ts";
import { TimerWheel } from "./time/timer_wheel.ts";
import { check, formError, NAME } from "./validate.ts";

/** Set by the class, because it needs private members. */
let openClient: (redlock: Redlock) => ClientState | undefined;

/**
 * A client for distributed locks by the Redlock algorithm. {@linkcode createRedlock} creates one
 * for Redis servers; this constructor takes nodes of any kind, which implement {@linkcode
 * LockNode}.
 *
 * The type parameter is inferred: `true` if the client was created with `fencing: true`.
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
export class Redlock<Fencing extends boolean = boolean> implements AsyncDisposable {
  readonly #client: ClientState;

  // A field and not a static block: bundlers leave out the class where nobody uses it.
  static readonly #shared = /* @__PURE__ */ ((): void => {
    openClient = (redlock) =>
      Object(redlock) === redlock && #client in redlock ? redlock.#client : undefined;
    defineConsoleView(this, "Redlock", (redlock) => {
      const { closed, nodes, quorum } = redlock.#client;
      const state = closed ? "closed" : "open";
      return { state, nodes: nodes.map(({ name }) => name), quorum };
    });
  })();

  /**
   * Creates a client for existing nodes.
   *
   * @param nodes The independent nodes: an array of 1 to 31 elements.
   * @param options Options for every call; each call can replace them.
   * @throws {TypeError} If `nodes` is empty, contains something that is not a {@linkcode LockNode},
   * two with the same name, or one that was given to another client; or if an option is unknown or
   * of the wrong type.
   * @throws {RangeError} If `nodes` has more than 31 elements, or an option is out of range.
   */
  constructor(
    nodes: readonly LockNode[],
    options: RedlockOptions & { fencing?: Fencing | undefined } = {},
  ) {
    this.#client = nodes instanceof ClientState ? nodes : newClient(nodes, options);
  }

  /**
   * Acquires a lock. Waits for it up to `waitMs` if somebody else holds it, first come, first
   * served.
   *
   * @param resource The resource to lock, a non-empty string; or an array of 1 to 1 000 of them
   * without duplicates, of which all or none are locked. With `any: true` an array of 1 to 52, of
   * which one is locked.
   * @param options Options that replace the client's own for this call.
   * @returns The lock, with a `number` as `fencingToken` if the call or the client has `fencing:
   * true`.
   * @throws {LockHeldError} If somebody else holds the lock when `waitMs` is over.
   * @throws {QuorumError} If too few nodes answered the last attempt before `waitMs` was over;
   * without waiting, if more than N − quorum nodes refuse for good, such as for a wrong password.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If `resource` is not of this form, an option is unknown or of the wrong
   * type, or `fencing` or `restartGuardMs` is set and a node does not support it.
   * @throws {RangeError} If there are more than 1 000 resources, or 52 with `any`, an option is out
   * of range, or a key would begin with `hasp:`.
   * @throws The reason of `signal`, if it aborts; whatever was set by then is released.
   */
  acquire<F extends boolean = Fencing>(
    resource: string | readonly string[],
    options?: RedlockOptions & { fencing?: F | undefined },
  ): Promise<LockOf<F>> {
    return begin(this, resource, options, "acquire") as Promise<LockOf<F>>;
  }

  /**
   * Tries to acquire a lock, without waiting for anybody: makes one attempt; with `any: true`, one
   * for each resource that is free. If some nodes granted the lock, but too few, perhaps nobody has
   * it: then the call tries again, up to four times, each time after a random pause of a few round
   * trips. So of callers that ask together, one wins.
   *
   * @param resource The resource to lock, or several, as in {@linkcode acquire}.
   * @param options Options that replace the client's own for this call; `waitMs` has no effect
   * here.
   * @returns The lock, or `undefined` if somebody else holds it, or if it is in its cooldown
   * (`cooldownMs`). Also if other data of the database is under its key, which blocks it until
   * somebody deletes that: {@linkcode inspect} reports this as `foreign`.
   * @throws What {@linkcode acquire} throws, except for `LockHeldError`.
   */
  tryAcquire<F extends boolean = Fencing>(
    resource: string | readonly string[],
    options?: RedlockOptions & { fencing?: F | undefined },
  ): Promise<LockOf<F> | undefined> {
    return begin(this, resource, options, "try") as Promise<LockOf<F> | undefined>;
  }

  /**
   * Acquires a lock, runs a routine, and releases the lock. The client extends the lock while the
   * routine runs, unless `autoExtend` is `false`. A release that too few nodes answer replaces
   * neither the routine's result nor its error; an event reports it.
   *
   * @param resource The resource to lock, or several, as in {@linkcode acquire}.
   * @param options Options that replace the client's own for this call. If `signal` aborts while
   * the routine runs, it aborts `lock.signal`.
   * @param routine The function to run. It should pass `lock.signal` to everything that must stop
   * when the lock is lost.
   * @returns The result of the routine.
   * @throws Whatever the routine throws.
   * @throws {LockLostError} If the routine did not throw, but the lock was lost while it ran, or
   * its release shows that the keys are gone. The routine may have finished.
   * @throws {TypeError} If `routine` is not a function.
   * @throws What {@linkcode acquire} throws, of the same classes; the routine has not run then.
   */
  async using<T, F extends boolean = Fencing>(
    resource: string | readonly string[],
    options: (RedlockOptions & { fencing?: F | undefined }) | undefined,
    routine: Routine<T, LockOf<F>>,
  ): Promise<T>;
  /**
   * Acquires a lock, runs a routine, and releases the lock: the same, with the options of the
   * client.
   */
  async using<T>(
    resource: string | readonly string[],
    routine: Routine<T, LockOf<Fencing>>,
  ): Promise<T>;
  async using<T>(
    resource: string | readonly string[],
    optionsOrRoutine: RedlockOptions | undefined | Routine<T, LockOf<Fencing>>,
    maybeRoutine?: Routine<T, FencedLock>,
  ): Promise<T> {
    const [options, routine] = withRoutine(optionsOrRoutine, maybeRoutine);
    return await runUsing(newCall(this, resource, options, "use"), routine);
  }

  /**
   * Adopts a lock that was handed over, perhaps by another process: gives its keys a new value, and
   * so makes this client the only one that holds it. Of all calls with one token, one at most gets
   * the lock. It does not matter if the former holder is slow: what it sends afterwards does
   * nothing.
   *
   * Tries again while other calls compete for the lock, and for up to `waitMs` while too few nodes
   * answer. The token can be used again after a {@linkcode QuorumError}. Never shortens the keys'
   * TTL; a call that fails may leave them its own, where that is longer. If the lock is over,
   * deletes what some nodes may still have of it.
   *
   * @example A lock on its way
   * ```ts
   * import { assert } from "@std/assert";
   * import { createRedlock } from "@hasp/redlock";
   * import { startNodes } from "@hasp/redlock/testing";
   *
   * await using nodes = await startNodes(3);
   * await using request = createRedlock(nodes.addresses);
   * await using worker = createRedlock(nodes.addresses);
   *
   * const given = await request.acquire("report:7");
   * const token = given.handOver(); // send it to the worker, for example in a job
   * await using lock = await worker.adopt(token, { autoExtend: true });
   * assert(lock.held);
   * ```
   *
   * @param token What {@linkcode Lock.handOver} has returned. The client must have the same nodes
   * and `keyPrefix` as the one that handed the lock over.
   * @param options Options that replace the client's own for this call, as in {@linkcode acquire}.
   * `any` and `mode` have no effect, and `cooldownMs` does not delay it.
   * @returns The lock. With `fencing`, its token is greater than that of the former holder.
   * @throws {LockLostError} If the lock has expired, was released, or is held by somebody else.
   * @throws {QuorumError} If too few nodes answered.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If `token` is something else, an option is unknown or of the wrong type, or
   * a node does not support adopting, `fencing` or `restartGuardMs` although that is set.
   * @throws {RangeError} If an option is out of range, or a key would begin with `hasp:`.
   * @throws The reason of `signal`, if it aborts; the lock can still be adopted then.
   * @experimental until 1.0
   */
  async adopt<F extends boolean = Fencing>(
    token: string,
    options?: RedlockOptions & { fencing?: F | undefined },
  ): Promise<LockOf<F>> {
    const client = insideOf(this, "adopt lock");
    const resolved = client.options.resolve("adopt lock", options);
    const given = readToken(token, resolved.keyPrefix);
    const atLeastMs = Math.max(resolved.atLeastMs, given.keptMs);
    const settings: Settings = { ...resolved, atLeastMs, any: false, mode: "exclusive" };
    checkAbilities("adopt lock", client.nodes, { ...settings, adopt: true });
    const call = new LockCall(client, settings, given.resources, "acquire", given);
    return await acquire(call) as LockOf<F>;
  }

  /**
   * Leads in terms: waits for a lock without a limit, runs a routine while it is held, pauses for a
   * second, and begins again, until `signal` aborts. The pause grows at random, up to 30 s, while
   * terms fail: if the lock is lost, the routine throws, or so many nodes refuse for good that no
   * quorum is left. The event `lead-failed` reports that; without a listener, `console.warn` does.
   *
   * @param resource The resource to lock, or several, as in {@linkcode acquire}.
   * @param options Options that replace the client's own; `waitMs` has no effect here. If `signal`
   * aborts, so does `lock.signal`, and the call resolves when the routine has ended and the lock is
   * released; nobody reports what the routine throws then.
   * @param routine The function to run in each term, until its `lock.signal` aborts.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError | RangeError} As in {@linkcode using}.
   */
  async lead<F extends boolean = Fencing>(
    resource: string | readonly string[],
    options: (RedlockOptions & { fencing?: F | undefined }) | undefined,
    routine: Routine<unknown, LockOf<F>>,
  ): Promise<void>;
  /** Leads in terms: the same, with the options of the client. */
  async lead(
    resource: string | readonly string[],
    routine: Routine<unknown, LockOf<Fencing>>,
  ): Promise<void>;
  async lead(
    resource: string | readonly string[],
    optionsOrRoutine: RedlockOptions | undefined | Routine<unknown, LockOf<Fencing>>,
    maybeRoutine?: Routine<unknown, FencedLock>,
  ): Promise<void> {
    const [options, routine] = withRoutine(optionsOrRoutine, maybeRoutine);
    await lead(newCall(this, resource, options, "use"), routine);
  }

  /**
   * Asks every node what it has under the key of a resource, without changing anything.
   *
   * @param resource The resource, a non-empty string.
   * @param options Options that replace the client's own for this call; only `nodeTimeoutMs` and
   * `keyPrefix` have an effect.
   * @returns Whether a quorum of nodes has the same lock there, and for how long.
   * @throws {QuorumError} If too few nodes answered to decide: the resource is never reported as
   * free then.
   * @throws {RedlockError} If the client is closed (`CLOSED`).
   * @throws {TypeError} If `resource` is not a non-empty string, or an option is unknown or of the
   * wrong type.
   * @throws {RangeError} If an option is out of range, or the key would begin with `hasp:`.
   */
  async inspect(resource: string, options?: RedlockOptions): Promise<Inspection> {
    const client = insideOf(this, "inspect lock");
    const { key, nodeTimeoutMs } = findKey(client, "inspect", resource, options);
    return await inspect(client, resource, key, nodeTimeoutMs);
  }

  /**
   * Closes the client. Waiting calls reject with a {@linkcode RedlockError} (`CLOSED`). Locks that
   * are held count as lost: their signals abort, and the client deletes their keys. Releases are
   * waited for, until a node has answered nothing for a quarter of a second: of what it has not
   * deleted by then, keys may stay until their TTL is over. Idempotent.
   *
   * @returns A promise that resolves in bounded time, when no timer and no connection is left.
   */
  close(): Promise<void> {
    return insideOf(this, "close lock client").close();
  }

  /** Closes the client at the end of `await using`, as {@linkcode close} does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Not `async`, because every lock would pay for one more layer of promises. */
function begin(
  redlock: Redlock,
  resource: string | readonly string[],
  options: RedlockOptions | undefined,
  purpose: "acquire" | "try",
): Promise<Lock | undefined> {
  try {
    return acquire(newCall(redlock, resource, options, purpose));
  } catch (error) {
    // wrong arguments are a rejection, like everything that fails later
    return Promise.reject(error);
  }
}

function newCall(
  redlock: Redlock,
  resource: string | readonly string[],
  options: RedlockOptions | undefined,
  purpose: Purpose,
): LockCall {
  const client = insideOf(redlock, "acquire lock");
  const settings = client.options.resolve("acquire lock", options);
  const { keyPrefix, any } = settings;
  const resources = checkResources("acquire lock", resource, keyPrefix, any);
  checkAbilities("acquire lock", client.nodes, settings);
  return new LockCall(client, settings, resources, purpose);
}

/** The inside of a client for nodes that a program has given it. */
function newClient(nodes: readonly LockNode[], options: RedlockOptions): ClientState {
  checkNodes(nodes);
  const checked = new LockOptions(ACTION, options, processName());
  return new ClientState(new TimerWheel(), takeNodes(nodes), checked);
}

/**
 * Creates a client on nodes of this library, whose time and randomness come from `wheel`, as those
 * of the nodes may.
 */
export function redlockOn(
  wheel: TimerWheel,
  nodes: readonly QuorumNode[],
  options: RedlockOptions | LockOptions,
): Redlock {
  const checked = options instanceof LockOptions ? options : new LockOptions(ACTION, options);
  // it takes that, too, which its declaration does not show
  return new Redlock(new ClientState(wheel, nodes, checked) as unknown as LockNode[]);
}

/**
 * The inside of a client.
 *
 * @param redlock What the caller passed.
 * @param action What fails otherwise, for messages: `check nodes`.
 * @throws {TypeError} If it is no client: one of another copy of this library, a `Proxy` of one, or
 * a method's `this` if that was called without its client.
 */
export function insideOf(redlock: Redlock, action: string): ClientState {
  const client = openClient(redlock);
  if (client) return client;
  const hint = redlock === undefined
    ? "; call methods on their client"
    : "; neither a Proxy of one nor one of another copy of this package will do";
  throw formError(action, "redlock", "must be a Redlock", redlock, hint);
}

/** The key of a resource, and how long each node has to answer about it. */
export function findKey(
  client: ClientState,
  verb: "inspect" | "release",
  resource: string,
  options: RedlockOptions | undefined,
  others?: readonly string[],
): { readonly key: string; readonly nodeTimeoutMs: number } {
  const { keyPrefix, nodeTimeoutMs } = client.options.resolve(`${verb} lock`, options, others);
  check(`${verb} lock`, "resource", resource, NAME);
  checkResources(`${verb} lock`, resource, keyPrefix);
  if (client.closed) throw undecided(verb, client, resource);
  return { key: keyPrefix + resource, nodeTimeoutMs };
}
