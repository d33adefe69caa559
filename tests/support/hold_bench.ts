/**
 * What a lock holds on nodes in memory, below the lock itself.
 *
 * @module
 */
import type { HeldLock } from "../../src/lock/held_lock.ts";
import { type RedlockOptions, resolveOptions } from "../../src/options.ts";
import { acquireInTurn, LockCall } from "../../src/lock/lock_call.ts";
import { createClientState } from "../../src/client_state.ts";
import { extend } from "../../src/lock/renewal.ts";
import { advanceUntil, runMicrotasks } from "./fake_clock.ts";
import { FakeCluster } from "./fake_nodes.ts";

/** Why a test loses a lock. */
export const CAUSE = new Error("the test wants it so");

/** A lock on "a" for a second. */
export class Bench {
  readonly cluster: FakeCluster;
  readonly held: HeldLock;

  constructor(cluster: FakeCluster, held: HeldLock) {
    this.cluster = cluster;
    this.held = held;
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return advanceUntil(this.cluster.clock, promise, 10_000, 1);
  }

  /** How often each node was asked to release. */
  get releases(): number[] {
    return this.cluster.nodes.map((node) => node.asked("release").length);
  }

  /** Begins an extension whose end nobody waits for. */
  extend(ttlMs = 1_000): void {
    extend(this.held, ttlMs).catch(() => {});
  }
}

/** Has `prepare` see to the nodes, acquires "a" on them, and forgets the events of that. */
export async function locked(
  nodeCount = 3,
  options: RedlockOptions = {},
  prepare: (cluster: FakeCluster) => void = () => {},
): Promise<Bench> {
  const cluster = new FakeCluster(nodeCount);
  prepare(cluster);
  const { nodes, wheel } = cluster;
  const client = createClientState(wheel, nodes);
  const onEvent = cluster.events.push.bind(cluster.events) as () => void;
  const settings = resolveOptions("test", { ttlMs: 1_000, onEvent, ...options });
  const call = new LockCall(client, settings, ["a"], false);
  const held = await advanceUntil(cluster.clock, acquireInTurn(call, (held) => held), 1_000, 1);
  await runMicrotasks();
  cluster.events.length = 0;
  return new Bench(cluster, held);
}
