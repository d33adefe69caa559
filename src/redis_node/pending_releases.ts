/**
 * Releases that did not reach their node, and tickets that are still in its queues: sent when it can be reached.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { CommandSender } from "./command_sender.ts";
import type { Operation } from "./operation.ts";

/** Most releases that are kept for one node; one more drops the oldest, whose TTL takes over. */
const PENDING_RELEASES_MAX = 4_096;
/** How long a release waits that the server refused for the moment, in milliseconds; doubled each time. */
const RETRY_DELAY_MS = 100;
/** Longest such delay, in milliseconds. */
const RETRY_DELAY_MS_MAX = 1_600;

/** A ticket that leaves the queues. */
export interface QueueLeave {
  /** The keys that it waits for. */
  readonly keys: readonly string[];
  /** The ticket. */
  readonly ticketId: string;
  /** When the queues are gone at the latest, by the monotonic clock. */
  readonly untilMs: number;
}

/** How a ticket that leaves the queues is put to a node; nobody reads the reply. */
export type LeaveOperation = Pick<
  Operation<Pick<QueueLeave, "keys" | "ticketId">>,
  "script" | "args"
>;

/** A release that has not reached its node. */
export interface PendingRelease extends Pick<LockRequest, "keys" | "value" | "replaces" | "mode"> {
  /** When the keys expire at the latest, by the monotonic clock. */
  readonly untilMs: number;
}

/** The releases that one node is yet to be sent. */
export class PendingReleases {
  readonly #connection: CommandSender;
  readonly #wheel: TimerWheel;
  readonly #sendOne: (release: PendingRelease | QueueLeave) => void;
  #releases: (PendingRelease | QueueLeave)[] = [];
  #timer: TimerEntry | undefined = undefined;
  #delayMs = RETRY_DELAY_MS;

  /**
   * @param connection The node's connection.
   * @param wheel Where the delay waits.
   * @param send Sends one.
   */
  constructor(
    connection: CommandSender,
    wheel: TimerWheel,
    send: (release: PendingRelease | QueueLeave) => void,
  ) {
    this.#connection = connection;
    this.#wheel = wheel;
    this.#sendOne = send;
  }

  /** Keeps a release of keys that live for `ttlMs` at the longest. */
  add(
    { keys, value, replaces, mode, ttlMs }: Omit<PendingRelease, "untilMs"> & { ttlMs: number },
  ): void {
    const untilMs = this.#wheel.clock.monotonicMs() + ttlMs;
    this.addAgain({ keys, value, replaces, mode, untilMs });
  }

  /** Keeps a release that was sent and did not arrive, or was refused for the moment. */
  addAgain(release: PendingRelease | QueueLeave): void {
    if (this.#releases.length >= PENDING_RELEASES_MAX) this.#releases.shift();
    this.#releases.push(release);
    if (this.#connection.open) this.#askLater(); // else it is sent on the next connection
  }

  /** Sends every release whose keys may still exist: the server has taken one, or there is another connection. */
  sendAll(): void {
    this.#delayMs = RETRY_DELAY_MS;
    if (this.#timer) this.#wheel.cancel(this.#timer);
    this.#timer = undefined;
    this.#send(Infinity);
  }

  /** Sends one of them after a delay: a server that refuses is not asked by all. */
  #askLater(): void {
    if (this.#timer) return;
    this.#timer = this.#wheel.after(this.#delayMs, () => {
      this.#timer = undefined;
      this.#send(1);
      if (this.#releases.length > 0) this.#askLater();
    });
    this.#delayMs = Math.min(2 * this.#delayMs, RETRY_DELAY_MS_MAX);
  }

  #send(count: number): void {
    const nowMs = this.#wheel.clock.monotonicMs();
    const releases = this.#releases.filter(({ untilMs }) => untilMs > nowMs);
    this.#releases = releases.slice(count);
    for (const release of releases.slice(0, count)) this.#sendOne(release);
  }
}
