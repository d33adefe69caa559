/**
 * One waiter on nodes in memory, below the calls.
 *
 * @module
 */
import { type ClientState, createClientState } from "../../src/client_state.ts";
import { undo } from "../../src/lock/undo.ts";
import { type RedlockOptions, resolveOptions } from "../../src/options.ts";
import type * as queue from "../../src/quorum/queue_ticket.ts";
import { askToAcquire, Round } from "../../src/quorum/round.ts";
import { QueuedWaiter } from "../../src/waiting/queued_waiter.ts";
import { ReleaseNotifications } from "../../src/waiting/release_notifications.ts";
import { advanceUntil } from "./fake_clock.ts";
import { UNHURRIED, WaitingCluster } from "./waiting_nodes.ts";

/** One waiter for "a", below the calls. */
export class WaiterBench {
  readonly cluster: WaitingCluster;
  readonly client: ClientState;
  readonly notifications: ReleaseNotifications;
  readonly waiter: QueuedWaiter;
  /** The last attempt, and a promise that resolves once it is decided. */
  latest: Round | undefined = undefined;
  asked: Promise<void> | undefined = undefined;

  /**
   * @param nodeCount How many nodes there are.
   * @param prepare Prepares them before they are asked to subscribe.
   */
  constructor(
    nodeCount = 3,
    prepare: (cluster: WaitingCluster) => void = () => {},
    options: RedlockOptions = {},
  ) {
    this.cluster = new WaitingCluster(nodeCount);
    prepare(this.cluster);
    const { wheel, nodes, events } = this.cluster;
    this.client = createClientState(wheel, nodes);
    this.notifications = new ReleaseNotifications(this.client, (event) => void events.push(event));
    this.waiter = new QueuedWaiter(this.notifications, this.client, ["a"]);
    this.waiter.settings = resolveOptions("test", { ...UNHURRIED, ...options });
  }

  /** Has the nodes with these numbers notify the waiter. */
  notify(...numbers: number[]): void {
    for (const number of numbers) this.cluster.nodes[number].notify(this.waiter.ticketId);
  }

  /** The present, in milliseconds. */
  get nowMs(): number {
    return this.cluster.clock.monotonicMs();
  }

  /** Makes one attempt for a second's lock, and takes it back if it fails. */
  async attempt(): Promise<Round> {
    const round = this.begin();
    await advanceUntil(this.cluster.clock, this.asked!, 1_000, 1);
    if (round.decision !== "granted") undo(round, true);
    return round;
  }

  /** Begins an attempt. */
  begin(nodeTimeoutMs = 500): Round {
    const value = this.cluster.wheel.random.value();
    const round = this.latest = new Round(this.client, ["a"], value, 1_000);
    round.ticket = this.waiter.nextTicket();
    this.asked = round.ask(askToAcquire, nodeTimeoutMs);
    return round;
  }

  /** Waits after an attempt; returns for how long, in milliseconds. */
  async wait(
    denied: Round,
    limitMs = 120_000,
    signal?: AbortSignal,
    attempt = 0,
  ): Promise<number> {
    const startMs = this.nowMs;
    const { clock } = this.cluster;
    await advanceUntil(clock, this.waiter.wait(attempt, limitMs, signal, denied), limitMs + 1, 1);
    return this.nowMs - startMs;
  }

  /** Makes an attempt that is denied, and waits; returns for how long, and the priority of the next one. */
  async denied(limitMs?: number): Promise<[waitedMs: number, priority: queue.QueuePriority]> {
    const round = await this.attempt();
    return [await this.wait(round, limitMs), this.waiter.priority];
  }
}
