import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import {
  bitCount,
  type NotificationHandler,
  ReleaseNotifications,
} from "../../../src/waiting/release_notifications.ts";
import { quorumSize } from "../../../src/quorum/quorum.ts";
import { createNodeSet } from "../../../src/quorum/round.ts";
import { WaitingCluster } from "../../support/waiting_nodes.ts";

/** What {@linkcode WaitingNode.refuse} is told. */
const REFUSAL = new Error("NOPERM");

/** Writes down what it is told. */
class LightSleeper implements NotificationHandler {
  readonly wakes: [seat: number, entry: string][] = [];
  changes = 0;
  /** Whether it still wants what it is woken for. */
  wants = true;

  onWake(nodeIndex: number, entry: string): boolean {
    this.wakes.push([nodeIndex, entry]);
    return this.wants;
  }

  onSubscriptionChange(): void {
    this.changes++;
  }
}

/** A bell of nodes that begin to tell when a test says so. */
class Bench {
  readonly cluster: WaitingCluster;
  readonly notifications: ReleaseNotifications;
  readonly handler = new LightSleeper();

  constructor(nodeCount = 3, prepare: (cluster: WaitingCluster) => void = () => {}) {
    this.cluster = new WaitingCluster(nodeCount);
    for (const node of this.cluster.nodes) node.listenMs = Infinity;
    prepare(this.cluster);
    const { wheel, nodes, events } = this.cluster;
    const nodeSet = createNodeSet(wheel, nodes);
    this.notifications = new ReleaseNotifications(nodeSet, (event) => void events.push(event));
  }

  get listened(): number[] {
    return this.cluster.nodes.map(({ listened }) => listened);
  }

  get unlistened(): number[] {
    return this.cluster.nodes.map(({ unlistened }) => unlistened);
  }

  advance(ms: number): Promise<void> {
    return this.cluster.clock.advance(ms);
  }

  /** Has the nodes with these numbers tell. */
  tell(...numbers: number[]): void {
    for (const number of numbers) this.cluster.nodes[number].tell();
  }
}

for (const [bits, count] of [[0, 0], [1, 1], [0b1011, 3], [0x7fffffff, 31]]) {
  Deno.test(`bitCount() of ${bits} is ${count}`, () => assertEquals(bitCount(bits), count));
}

Deno.test("ReleaseNotifications draws its id: 20 characters without a colon", () => {
  const { notifications, cluster } = new Bench();
  assertMatch(notifications.id, /^[^:]{20}$/u);
  assert(cluster.values[0].startsWith(notifications.id));
});

Deno.test("ReleaseNotifications asks no node before somebody waits, then each once, however many wait", () => {
  const bench = new Bench();
  assertEquals(bench.listened, [0, 0, 0]);
  const number = bench.notifications.enter(bench.handler);
  assertEquals(bench.listened, [1, 1, 1]);
  assertNotEquals(bench.notifications.enter(new LightSleeper()), number);
  bench.tell(0, 1, 2);
  bench.notifications.enter(new LightSleeper());
  assertEquals(bench.listened, [1, 1, 1]);
});

for (const nodeCount of [1, 2, 3, 4, 5, 31]) {
  const quorum = quorumSize(nodeCount);
  Deno.test(`ReleaseNotifications of ${nodeCount} nodes is heard once ${quorum} tell, and not before`, () => {
    const bench = new Bench(nodeCount);
    bench.notifications.enter(bench.handler);
    for (let number = 0; number < nodeCount; number++) {
      assertEquals(bench.notifications.hasQuorum, number >= quorum, `${number}`);
      bench.tell(number);
    }
    assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [true, nodeCount]);
  });
}

Deno.test("ReleaseNotifications is not heard by the same node twice", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.tell(1, 1);
  assertEquals(bench.notifications.hasQuorum, false);
});

// Settled

Deno.test("ReleaseNotifications is settled once each node tells, cannot or never will", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.tell(0);
  bench.cluster.nodes[1].deafen();
  assertEquals(bench.notifications.isReady, false);
  bench.cluster.nodes[2].refuse(REFUSAL);
  assertEquals(
    [bench.notifications.isReady, bench.notifications.hasQuorum, bench.handler.changes],
    [true, false, 3],
  );
});

Deno.test("ReleaseNotifications is settled 50 ms after a quorum tells, and says so", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  await bench.advance(900);
  bench.tell(0, 1);
  await bench.advance(49);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [false, 2]);
  await bench.advance(1);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [true, 3]);
});

Deno.test("ReleaseNotifications is settled after a second without a quorum, and says so", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.tell(0);
  await bench.advance(999);
  assertEquals([bench.notifications.isReady, bench.handler.changes], [false, 1]);
  await bench.advance(1);
  assertEquals(
    [bench.notifications.isReady, bench.notifications.hasQuorum, bench.handler.changes],
    [true, false, 2],
  );
});

Deno.test("ReleaseNotifications that is settled stays so, whatever nodes tell later", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  await bench.advance(1_000);
  bench.tell(0, 1);
  assertEquals([bench.notifications.isReady, bench.notifications.hasQuorum], [true, true]);
  bench.cluster.nodes[0].deafen();
  assertEquals([bench.notifications.isReady, bench.notifications.hasQuorum], [true, false]);
});

Deno.test("ReleaseNotifications says nothing when the time for nodes is over that have told by then", async () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.tell(0, 1, 2);
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

// Nodes that don't tell

Deno.test("ReleaseNotifications waits for no node that has no way to tell, and reports none", () => {
  const bench = new Bench(3, ({ nodes }) => Object.assign(nodes[1], { subscribe: undefined }));
  bench.notifications.enter(bench.handler);
  assertEquals(bench.listened, [1, 0, 1]);
  bench.tell(0);
  assertEquals(bench.notifications.isReady, false);
  bench.tell(2);
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
  assertEquals(bench.listened, [2, 1, 2]);
  bench.tell(0, 2);
  assertEquals([bench.notifications.isReady, bench.cluster.events.length], [true, 1]);
});

Deno.test("ReleaseNotifications without a listener takes a refusal all the same", () => {
  const { wheel, nodes } = new WaitingCluster(1);
  const notifications = new ReleaseNotifications({ nodes, wheel, quorum: 1 }, undefined);
  nodes[0].refusal = REFUSAL;
  notifications.enter(new LightSleeper());
  assertEquals([notifications.isReady, notifications.hasQuorum], [true, false]);
});

Deno.test("ReleaseNotifications hears no more of a node that told and then refuses", () => {
  const bench = new Bench(1);
  bench.notifications.enter(bench.handler);
  bench.tell(0);
  bench.cluster.nodes[0].refuse(REFUSAL);
  assertEquals(
    [bench.notifications.hasQuorum, bench.notifications.isReady, bench.handler.changes],
    [false, true, 2],
  );
});

Deno.test("ReleaseNotifications is not heard while nodes are deaf, and is again when they tell anew", () => {
  const bench = new Bench();
  bench.notifications.enter(bench.handler);
  bench.tell(0, 1, 2);
  bench.cluster.nodes[0].deafen();
  assertEquals(bench.notifications.hasQuorum, true);
  bench.cluster.nodes[1].deafen();
  assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [false, 5]);
  bench.tell(0);
  assertEquals([bench.notifications.hasQuorum, bench.handler.changes], [true, 6]);
});

Deno.test("ReleaseNotifications tells all who wait of a change, and nobody who has left meanwhile for good", () => {
  const bench = new Bench();
  const { notifications } = bench;
  const left = new LightSleeper();
  notifications.leave(notifications.enter(left));
  const others = [new LightSleeper(), new LightSleeper()];
  const numbers = others.map((handler) => notifications.enter(handler));
  others[0].onSubscriptionChange = () => notifications.leave(numbers[0]);
  bench.tell(0, 1);
  assertEquals([left.changes, others[1].changes], [0, 2]);
});

// Idle

Deno.test("ReleaseNotifications has nodes tell no longer once nobody has waited for 30 s", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  const numbers = [notifications.enter(bench.handler), notifications.enter(new LightSleeper())];
  bench.tell(0, 1, 2);
  notifications.leave(numbers[0]);
  await bench.advance(60_000);
  notifications.leave(numbers[1]);
  await bench.advance(29_999);
  assertEquals([bench.unlistened, notifications.hasQuorum], [[0, 0, 0], true]);
  await bench.advance(1);
  assertEquals([bench.unlistened, notifications.hasQuorum, notifications.isReady], [
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
  assertEquals([bench.listened, bench.unlistened], [[1, 1, 1], [0, 0, 0]]);
  await bench.advance(1);
  assertEquals(bench.unlistened, [1, 1, 1]);
});

Deno.test("ReleaseNotifications that was idle asks anew, and waits for nodes as it did at first", async () => {
  const bench = new Bench();
  const { notifications } = bench;
  notifications.leave(notifications.enter(bench.handler));
  bench.tell(0, 1);
  bench.cluster.nodes[2].deafen();
  await bench.advance(30_000);
  notifications.enter(bench.handler);
  assertEquals([bench.listened, notifications.isReady, notifications.hasQuorum], [
    [2, 2, 2],
    false,
    false,
  ]);
  await bench.advance(990);
  bench.tell(0, 1);
  await bench.advance(49);
  assertEquals([notifications.isReady, notifications.hasQuorum], [false, true]);
  await bench.advance(1);
  assertEquals(notifications.isReady, true);
});

Deno.test("ReleaseNotifications that is idle takes no notice of a node that still begins to tell", async () => {
  const bench = new Bench(1);
  bench.notifications.leave(bench.notifications.enter(bench.handler));
  await bench.advance(30_000);
  bench.tell(0);
  assertEquals(bench.notifications.hasQuorum, false);
});

// Wake-ups

Deno.test("ReleaseNotifications wakes the one whom it concerns", () => {
  const { notifications, handler, cluster: { nodes } } = new Bench();
  const other = new LightSleeper();
  notifications.enter(other);
  const entry = `${notifications.id}:${notifications.enter(handler)}:12:34`;
  nodes[2].wake(entry);
  assertEquals([handler.wakes, other.wakes], [[[2, entry]], []]);
  assertEquals(nodes[2].leaves, []);
});

for (const what of ["has left", "no longer wants it"]) {
  Deno.test(`ReleaseNotifications takes one who ${what} out of line where it is woken, so that the next is`, () => {
    const { notifications, handler, cluster: { nodes } } = new Bench();
    const number = notifications.enter(handler);
    if (what === "has left") notifications.leave(number);
    handler.wants = false;
    const entry = `${notifications.id}:${number}:1234`;
    nodes[1].enqueue("a", entry, "other:1");
    nodes[1].wake(entry);
    assertEquals(nodes.map(({ leaves }) => leaves), [[], [entry], []]);
    assertEquals([nodes[1].line(), nodes[1].wakes], [["other:1"], ["other:1"]]);
    assertEquals(handler.wakes.length, what === "has left" ? 0 : 1);
  });
}

Deno.test("ReleaseNotifications that wakes nobody is content with a node that knows no leaving", () => {
  const { notifications, handler, cluster: { nodes } } = new Bench();
  notifications.leave(notifications.enter(handler));
  Object.assign(nodes[0], { leave: undefined });
  nodes[0].wake(`${notifications.id}:1:1234`);
  assertEquals(handler.wakes, []);
});

Deno.test("ReleaseNotifications gives no number twice", () => {
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

Deno.test("ReleaseNotifications remembers 4,096 contended lines, and forgets the oldest for one more", () => {
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

Deno.test("ReleaseNotifications that is closed hears nothing, is settled, and opens nothing", () => {
  const bench = new Bench();
  const { notifications } = bench;
  notifications.enter(bench.handler);
  bench.tell(0, 1);
  notifications.close();
  bench.tell(0, 1, 2);
  assertEquals([notifications.closed, notifications.hasQuorum], [true, false]);
  assert(notifications.isReady);
  const fresh = new Bench();
  fresh.notifications.close();
  fresh.notifications.leave(fresh.notifications.enter(fresh.handler));
  assertEquals([fresh.listened, fresh.cluster.wheel.size], [[0, 0, 0], 0]);
});
