/**
 * Releases that did not reach their node, and tickets that are to leave its queues: sent when it
 * can be reached. Each is needed for its `ttlMs` after it failed: that is how long its keys may
 * live, or, if it only takes a ticket out, the queues. On another connection all are sent, because
 * a server that stood still may have set the keys only now. Those that are not needed any more are
 * dropped while a connection lasts, and without one if there are many.
 *
 * @module
 */
import { FAILED, UNSENT } from "../quorum/outcome.ts";
import { type QuorumNode, type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import { backoffMs, SERVER_BACKOFF } from "../time/backoff.ts";
import type { TimerEntry } from "../time/timer_wheel.ts";
import type { CommandSender, ServerAccess } from "./command_sender.ts";
import type { Release } from "./scripts/script.ts";

/** Those that are not needed are dropped when so many were added, or more if many are kept. */
const SWEEP_STEP = 1_000;

/** What a release that is repeated needs of a request. */
type Repeatable = Omit<Release, "pool"> & Pick<QuorumRequest, "ttlMs">;

/** The node, as its pending releases need it; their answers are for no index. */
interface ReleasingNode extends Pick<QuorumNode, "ask"> {
  readonly server: Pick<ServerAccess, "wheel">;
  readonly connection: Pick<CommandSender, "open">;
}

/** A release of the node's own, whose answer nobody waits for. */
interface PendingRelease extends QuorumRequest {
  /** When the keys, or the queues, are gone at the latest, by the monotonic clock. */
  readonly untilMs: number;
}

/** The releases that one node is yet to be sent. */
export class PendingReleases {
  readonly #node: ReleasingNode;
  #releases: PendingRelease[] = [];
  /** How many were added since those that are not needed were last dropped. */
  #added = 0;
  #timer: TimerEntry | undefined;
  /** How many delays there were since the server took one, or the connection was made. */
  #delays = 0;

  /** @param node The node, which releases. */
  constructor(node: ReleasingNode) {
    this.#node = node;
  }

  /** Keeps a release that was not sent, did not arrive, or was refused for the moment. */
  add(release: Repeatable | PendingRelease): void {
    const pending = "untilMs" in release ? release : this.#pending(release);
    // mutation: pending-release-forgotten
    if (!this.#isNeeded(pending)) return; // that was its last try
    this.#releases.push(pending);
    // not at each one: to filter them takes time in proportion to how many there are
    if (++this.#added > SWEEP_STEP + this.#releases.length / 2) this.#dropNeedless();
    if (this.#node.connection.open) this.#askLater(); // else it is sent on the next connection
  }

  /** Sends every release: the server has taken one, or there is another connection. */
  sendAll(): void {
    this.#delays = 0;
    this.#node.server.wheel.cancel(this.#timer);
    this.#sendOldest(Infinity);
  }

  #pending(release: Repeatable): PendingRelease {
    const { keys, value, ttlMs, replaces, mode, keptMs, keepsTicket } = release;
    const ticket = keepsTicket ? undefined : release.ticket; // its caller asks again by itself
    return {
      ...UNREAD,
      ...{ keys, value, ttlMs, replaces, mode, keptMs, ticket, untilMs: this.#nowMs + ttlMs },
      answer: (_nodeIndex, outcome) => {
        if (outcome !== FAILED && outcome !== UNSENT) this.sendAll(); // the server has taken it
      },
    };
  }

  /** Sends one of them after a delay: a server that refuses is not asked by all. */
  #askLater(): void {
    if (this.#timer?.scheduled) return;
    const { wheel } = this.#node.server;
    this.#timer = wheel.after(backoffMs(wheel.random, SERVER_BACKOFF, this.#delays++), () => {
      if (!this.#node.connection.open) return; // the next connection sends all
      this.#dropNeedless();
      this.#sendOldest(1);
      if (this.#releases.length > 0) this.#askLater();
    });
  }

  #sendOldest(count: number): void {
    for (const release of this.#releases.splice(0, count)) this.#node.ask("release", release, 0);
  }

  #dropNeedless(): void {
    this.#added = 0;
    this.#releases = this.#releases.filter((release) => this.#isNeeded(release));
  }

  #isNeeded({ untilMs }: PendingRelease): boolean {
    return untilMs > this.#nowMs;
  }

  get #nowMs(): number {
    return this.#node.server.wheel.clock.monotonicMs();
  }
}
