/**
 * Releases that did not reach their node, and are sent when it can be reached.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { CommandSender } from "./command_sender.ts";

/** Most releases that are kept for one node; one more drops the oldest, whose TTL takes over. */
const PENDING_RELEASES_MAX = 4_096;
/** How long a release waits for a server that replied that it is busy, in milliseconds. */
const PENDING_RELEASE_DELAY_MS = 500;

/** A release that has not reached its node. */
export interface PendingRelease {
  /** The keys. */
  readonly keys: readonly string[];
  /** The value that they hold. */
  readonly value: string;
  /** When they expire at the latest, by the monotonic clock. */
  readonly untilMs: number;
}

/** The releases that one node is yet to be sent. */
export class PendingReleases {
  readonly #connection: CommandSender;
  readonly #wheel: TimerWheel;
  readonly #send: (release: PendingRelease) => void;
  #releases: PendingRelease[] = [];
  #timer: TimerEntry | undefined = undefined;

  /**
   * @param connection The node's connection.
   * @param wheel Where the delay waits.
   * @param send Sends one.
   */
  constructor(
    connection: CommandSender,
    wheel: TimerWheel,
    send: (release: PendingRelease) => void,
  ) {
    this.#connection = connection;
    this.#wheel = wheel;
    this.#send = send;
  }

  /** Keeps a release of keys that live for `ttlMs` at the longest. */
  add({ keys, value, ttlMs }: { keys: readonly string[]; value: string; ttlMs: number }): void {
    this.addAgain({ keys, value, untilMs: this.#wheel.clock.monotonicMs() + ttlMs });
  }

  /** Keeps a release that was sent and did not arrive, or was refused for the moment. */
  addAgain(release: PendingRelease): void {
    if (this.#releases.length >= PENDING_RELEASES_MAX) this.#releases.shift();
    this.#releases.push(release);
    // If the connection is down, it is sent on the next one; else after a delay.
    if (this.#connection.open) {
      this.#timer ??= this.#wheel.after(PENDING_RELEASE_DELAY_MS, () => this.sendAll());
    }
  }

  /** Sends every release whose keys may still exist. */
  sendAll(): void {
    if (this.#timer) this.#wheel.cancel(this.#timer);
    this.#timer = undefined;
    const releases = this.#releases;
    this.#releases = [];
    const nowMs = this.#wheel.clock.monotonicMs();
    for (const release of releases) if (release.untilMs > nowMs) this.#send(release);
  }
}
