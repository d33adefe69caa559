import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import {
  bitCount,
  type NotificationHandler,
  ReleaseNotifications,
} from "../../../src/waiting/release_notifications.ts";
import { quorumSize } from "../../../src/quorum/quorum.ts";
import { createNodeSet } from "../../../src/quorum/round.ts";
import type { QueueNotice } from "../../../src/quorum/queue_ticket.ts";
import { WaitingCluster } from "../../support/waiting_nodes.ts";

/** What {@linkcode WaitingNode.refuse} is told. */
const REFUSAL = new Error("NOPERM");

/** Writes down what it is told. */
class Recorder implements NotificationHandler {
  readonly notices: [nodeIndex: number, notice: QueueNotice][] = [];
  changes = 0;

  onReleased(nodeIndex: number, notice: QueueNotice): void {
    this.notices.push([nodeIndex, notice]);
  }

  onSubscriptionChange(): void {
    this.changes++;
  }
}

/** The notifications of nodes that confirm subscriptions when a test says so. */
class Bench {
  readonly cluster: WaitingCluster;
  readonly notifications: ReleaseNotifications;
  readonly handler = new Recorder();

  constructor(nodeCount = 3, prepare: (cluster: WaitingCluster) => void = () => {}) {
    this.cluster = new WaitingCluster(nodeCount);
    for (const node of this.cluster.nodes) node.subscribeMs = Infinity;
    prepare(this.cluster);
    const { wheel, nodes, events } = this.cluster;
    const nodeSet = createNodeSet(wheel, nodes);
    this.notifications = new ReleaseNotifications(nodeSet, (event) => void events.push(event));
  }

  get subscribes(): number[] {
    return this.cluster.nodes.map(({ subscribes }) => subscribes);
  }

  get unsubscribes(): number[] {
    return this.cluster.nodes.map(({ unsubscribes }) => unsubscribes);
  }

  advance(ms: number): Promise<void> {
    return this.cluster.clock.advance(ms);
  }

  /** Has the nodes with these numbers confirm. */
  confirm(...numbers: number[]): void {
    for (const number of numbers) this.cluster.nodes[number].confirm();
  }
}

for (const [bits, count] of [[0, 0], [1, 1], [0b1011, 3], [0x7fffffff, 31]]) {
  Deno.test(`bitCount() of ${bits} is ${count}`, () => assertEquals(bitCount(bits), count));
}

Deno.test("ReleaseNotifications draws its id, 20 characters without a colon, with which its tickets begin", () => {
  const { notifications, cluster } = new Bench();
  assertMatch(notifications.id, /^[^:]{20}$/u);
  assert(cluster.values[0].startsWith(notifications.id));
  assertEquals(notifications.enter(new Recorder()), `${notifications.id}:1`);
});

Deno.test("ReleaseNotifications asks no node before somebody waits, then each once, however many wait", () => {
  const bench = new Bench();
  assertEquals(bench.subscribes, [0, 0, 0]);
  const number = bench.notifications.enter(bench.handler);
  assertEquals(bench.subscribes, [1, 1, 1]);
  assertNotEquals(bench.notifications.enter(new Recorder()), number);
  bench.confirm(0, 1, 2);
  bench.notifications.enter(new Recorder());
  assertEquals(bench.subscribes, [1, 1, 1]);
});

for (const nodeCount of [1, 2, 3, 4, 5, 31]) {
  const quorum = quorumSize(nodeCount);
  Deno.test(`ReleaseNotifications of ${nodeCount} nodes has a quorum once ${quorum} are subscribed, and not before`, () => {
    const bench = new Bench(nodeCount);
    bench.notifications.enter(bench.handler);
    for (let number = 0; number < nodeCount; number++) {
      assertEquals(bench.notifications.hasQuorum, number >= quorum, `${number}`);
      bench.confirm(number);
    }
    assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [true, nodeCount]);
  });
}

Deno.test("ReleaseNotifications counts the same node once", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.confirm(1, 1);
  assertEquals(bench.notifications.hasQuorum, false);
});

// Ready

Deno.test("ReleaseNotifications is ready once each node is subscribed, cannot be or never will", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.confirm(0);
  bench.cluster.nodes[1].cut();
  assertEquals(bench.notifications.isReady, false);
  bench.cluster.nodes[2].refuse(REFUSAL);
  assertEquals(
    [bench.notifications.isReady, bench.notifications.hasQuorum, bench.handler.changes],
    [true, false, 3],
  );
});

Deno.test("ReleaseNotifications is ready 50 ms after a quorum is subscribed, and says so", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  await bench.advance(900);
  bench.confirm(0, 1);
  await bench.advance(49);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [false, 2]);
  await bench.advance(1);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [true, 3]);
});

Deno.test("ReleaseNotifications is ready after a second without a quorum, and says so", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.confirm(0);
  await bench.advance(999);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [false, 1]);
  await bench.advance(1);
  assertEquals(
    [bench.notifications.isReady, bench.notifications.hasQuorum, bench.handler.changes],
    [true, false, 2],
  );
});

Deno.test("ReleaseNotifications that is ready stays so, whatever nodes do later", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  await bench.advance(1_000);
  bench.confirm(0, 1);
  assertEquals([bench.notifications.isReady, bench.notifications.hasQuorum], [true, true]);
  bench.cluster.nodes[0].cut();
  assertEquals([bench.notifications.isReady, bench.notifications.hasQuorum], [true, false]);
});

Deno.test("ReleaseNotifications says nothing when the time is over for nodes that are subscribed by then", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.confirm(0, 1, 2);
  await bench.advance(2_000);
  assertEquals(bench.handler.changes, 3);
});

Deno.test("ReleaseNotifications does not keep the process alive", async () => {
  const bench = new Bench();
  bench.notifications.leave(bench.notifications.enter(bench.handler));
  assertEquals(bench.cluster.clock.timersAlive, 0);
  await bench.advance(2_000);
  assertEquals(bench.cluster.clock.timersAlive, 0);
});

// Nodes that don't notify

Deno.test("ReleaseNotifications waits for no node that has no subscriptions, and reports none", () => {
  const bench = new Bench(3, ({ nodes }) => Object.assign(nodes[1], { subscribe: undefined }));
  bench.notifications.enter(bench.handler);
  assertEquals(bench.subscribes, [1, 0, 1]);
  bench.confirm(0);
  assertEquals(bench.notifications.isReady, false);
  bench.confirm(2);
  assertEquals([bench.notifications.isReady, bench.notifications.hasQuorum], [true, true]);
  assertEquals(bench.cluster.events, []);
});

Deno.test("ReleaseNotifications reports a node that refuses once, and never asks it again", async () => {
  const bench = new Bench();
  const number = bench.notifications.enter(bench.handler);
  bench.cluster.nodes[1].refuse(REFUSAL);
  bench.cluster.nodes[1].refuse(new Error("again"));
  assertEquals(bench.cluster.events as unknown[], [
    { type: "notify-refused", node: "node1", error: REFUSAL },
  ]);
  bench.notifications.leave(number);
  await bench.advance(30_000);
  bench.notifications.enter(bench.handler);
  assertEquals(bench.subscribes, [2, 1, 2]);
  bench.confirm(0, 2);
  assertEquals([bench.notifications.isReady, bench.cluster.events.length], [true, 1]);
});

Deno.test("ReleaseNotifications without a listener takes a refusal all the same", () => {
  const { wheel, nodes } = new WaitingCluster(1);
  const notifications = new ReleaseNotifications({ nodes, wheel, quorum: 1 }, undefined);
  nodes[0].refusal = REFUSAL;
  notifications.enter(new Recorder());
  assertEquals([notifications.isReady, notifications.hasQuorum], [true, false]);
});

Deno.test("ReleaseNotifications has no quorum when a node refuses that was subscribed", () => {
  const bench = new Bench(1);
  bench.notifications.enter(bench.handler);
  bench.confirm(0);
  bench.cluster.nodes[0].refuse(REFUSAL);
  assertEquals(
    [bench.notifications.hasQuorum, bench.notifications.isReady, bench.handler.changes],
    [false, true, 2],
  );
});

Deno.test("ReleaseNotifications has no quorum while nodes are cut, and has it again when they are back", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.confirm(0, 1, 2);
  bench.cluster.nodes[0].cut();
  assertEquals(bench.notifications.hasQuorum, true);
  bench.cluster.nodes[1].cut();
  assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [false, 5]);
  bench.confirm(0);
  assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [true, 6]);
});

Deno.test("ReleaseNotifications reports a change to all who wait, and to nobody who has left", () => {
  const bench = new Bench();
  const { notifications } = bench;
  const left = new Recorder();
  notifications.leave(notifications.enter(left));
  const others = [new Recorder(), new Recorder()];
  const numbers = others.map((handler) => notifications.enter(handler));
  others[0].onSubscriptionChange = () => notifications.leave(numbers[0]);
  bench.confirm(0, 1);
  assertEquals([left.changes, others[1].changes], [0, 2]);
});

// Idle

Deno.test("ReleaseNotifications unsubscribes once nobody has waited for 30 s", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  const numbers = [notifications.enter(bench.handler), notifications.enter(new Recorder())];
  bench.confirm(0, 1, 2);
  notifications.leave(numbers[0]);
  await bench.advance(60_000);
  notifications.leave(numbers[1]);
  await bench.advance(29_999);
  assertEquals([bench.unsubscribes, notifications.hasQuorum], [[0, 0, 0], true]);
  await bench.advance(1);
  assertEquals([bench.unsubscribes, notifications.hasQuorum, notifications.isReady], [
    [1, 1, 1],
    false,
    false,
  ]);
  assertEquals(bench.cluster.wheel.size, 0);
});

Deno.test("ReleaseNotifications goes on when somebody waits again within 30 s, and counts them anew", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  notifications.leave(notifications.enter(bench.handler));
  await bench.advance(29_000);
  const number = notifications.enter(bench.handler);
  await bench.advance(29_000);
  notifications.leave(number);
  notifications.leave(number); // does nothing more
  await bench.advance(29_999);
  assertEquals([bench.subscribes, bench.unsubscribes], [[1, 1, 1], [0, 0, 0]]);
  await bench.advance(1);
  assertEquals(bench.unsubscribes, [1, 1, 1]);
});

Deno.test("ReleaseNotifications that was idle subscribes again, and waits for nodes as it did at first", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  notifications.leave(notifications.enter(bench.handler));
  bench.confirm(0, 1);
  bench.cluster.nodes[2].cut();
  await bench.advance(30_000);
  notifications.enter(bench.handler);
  assertEquals([bench.subscribes, notifications.isReady, notifications.hasQuorum], [
    [2, 2, 2],
    false,
    false,
  ]);
  await bench.advance(990);
  bench.confirm(0, 1);
  await bench.advance(49);
  assertEquals([notifications.isReady, notifications.hasQuorum], [false, true]);
  await bench.advance(1);
  assertEquals(notifications.isReady, true);
});

Deno.test("ReleaseNotifications that is idle takes no notice of a subscription that comes late", async () => {
  const bench = new Bench(1);
  bench.notifications.leave(bench.notifications.enter(bench.handler));
  await bench.advance(30_000);
  bench.confirm(0);
  assertEquals(bench.notifications.hasQuorum, false);
});

// Notifications

Deno.test("ReleaseNotifications hands a notification to the waiter with that ticket", () => {
  const { notifications, handler, cluster: { nodes } } = new Bench();
  const other = new Recorder();
  notifications.enter(other);
  const ticketId = notifications.enter(handler);
  nodes[2].notify(ticketId);
  nodes[0].notify(ticketId, "next");
  assertEquals([handler.notices, other.notices], [[[2, "first"], [0, "next"]], []]);
});

Deno.test("ReleaseNotifications takes no notice of tickets that have left or never were, and asks no node", () => {
  const { notifications, handler, cluster: { nodes } } = new Bench();
  const left = notifications.enter(new Recorder());
  notifications.enter(handler);
  notifications.leave(left);
  for (const ticketId of [left, `${notifications.id}:zz`, "other:2", ""]) nodes[1].notify(ticketId);
  assertEquals([handler.notices, nodes.map(({ leaves }) => leaves)], [[], [[], [], []]]);
});

Deno.test("ReleaseNotifications reads the shared clock from what subscriptions tell", () => {
  const bench = new Bench(3, ({ nodes }) => nodes.forEach((node) => node.aheadMs = 7_000));
  bench.notifications.enter(bench.handler);
  bench.confirm(0);
  const { clock } = bench.cluster;
  assertEquals(bench.notifications.clock.at(clock.monotonicMs()), clock.wallMs() + 7_000);
});

Deno.test("ReleaseNotifications gives no ticket twice", () => {
  const { notifications, handler } = new Bench();
  const numbers = Array.from({ length: 100 }, () => {
    const number = notifications.enter(handler);
    notifications.leave(number);
    return number;
  });
  assertEquals(new Set(numbers).size, 100);
});

// Contention

Deno.test("ReleaseNotifications remembers what others wanted until it is idle", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  assertEquals(notifications.expectsContention("a"), false);
  const number = notifications.enter(bench.handler);
  notifications.noteContended("a");
  assertEquals([notifications.expectsContention("a"), notifications.expectsContention("b")], [
    true,
    false,
  ]);
  await bench.advance(60_000);
  notifications.leave(number);
  await bench.advance(29_999);
  assertEquals(notifications.expectsContention("a"), true);
  await bench.advance(1);
  assertEquals(notifications.expectsContention("a"), false);
});

Deno.test("ReleaseNotifications remembers 4,096 contended resources, and forgets the oldest for one more", () => {
  const { notifications } = new Bench();
  for (let index = 0; index < 4_096; index++) notifications.noteContended(`${index}`);
  notifications.noteContended("4095"); // known
  assertEquals(notifications.expectsContention("0"), true);
  notifications.noteContended("4096");
  assertEquals(["0", "1", "4096"].map((line) => notifications.expectsContention(line)), [
    false,
    true,
    true,
  ]);
});

// Closing

Deno.test("ReleaseNotifications that is closed has no quorum, is ready, and opens nothing", () => {
  const bench = new Bench();
  const { notifications } = bench;
  notifications.enter(bench.handler);
  bench.confirm(0, 1);
  notifications.close();
  bench.confirm(0, 1, 2);
  assertEquals([notifications.closed, notifications.hasQuorum], [true, false]);
  assert(notifications.isReady);
  const fresh = new Bench();
  fresh.notifications.close();
  fresh.notifications.leave(fresh.notifications.enter(fresh.handler));
  assertEquals([fresh.subscribes, fresh.cluster.wheel.size], [[0, 0, 0], 0]);
});
