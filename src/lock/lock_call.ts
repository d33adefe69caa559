/**
 * One call for a lock: what it asks for, and how far it has come. What it waits for is in
 * `waits.ts`, how it ends without a lock in `refusal.ts`.
 *
 * @module
 */
import { closedError, lockName } from "../messages.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";
import { keysName, readersName } from "../resources.ts";
import type { QueuedWaiter, WaitingCall } from "../waiting/queued_waiter.ts";
import type { ClientState } from "./client_state.ts";
import type { HandedOver } from "./hand_over_token.ts";
import { Pool } from "./pool.ts";

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
  waiter: QueuedWaiter | undefined = undefined;
  /** How often it has paused because its settings forbid notifications. */
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
    const name = keysName(this.keys);
    this.localName = this.pool?.name ?? (this.mode ? readersName(name) : name);
    this.purpose = purpose;
    this.waitMs = purpose === "try" ? 0 : settings.waitMs;
    this.adopts = adopts;
    this.#sinceMs = client.wheel.clock.monotonicMs();
  }

  /** What it asks of the nodes. */
  get verb(): "acquire" | "adopt" {
    return this.adopts === undefined ? "acquire" : "adopt";
  }

  /**
   * The name of what it asks for now: of its keys, for readers and writers alike, or of one key of
   * a pool. Under it this client keeps its own locks, and remembers that others wait.
   */
  get name(): string {
    // each attempt asks, and to sort many keys again takes long
    return this.pool?.key ?? (this.mode ? keysName(this.keys) : this.localName);
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
