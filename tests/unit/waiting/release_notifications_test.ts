import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { Bell, bitCount, type Sleeper } from "../../../src/waiting/release_notifications.ts";
import { quorumSize } from "../../../src/quorum/quorum.ts";
import { WaitingCluster } from "../../support/waiting_nodes.ts";

/** What {@linkcode WaitingNode.refuse} is told. */
const REFUSAL = new Error("NOPERM");

/** Writes down what it is told. */
class LightSleeper implements Sleeper {
  readonly wakes: [seat: number, entry: string][] = [];
  changes = 0;
  /** Whether it still wants what it is woken for. */
  wants = true;

  onWake(seat: number, entry: string): boolean {
    this.wakes.push([seat, entry]);
    return this.wants;
  }

  onBellChange(): void {
    this.changes++;
  }
}

/** A bell of nodes that begin to tell when a test says so. */
class Bench {
  readonly cluster: WaitingCluster;
  readonly bell: Bell;
  readonly sleeper = new LightSleeper();

  constructor(nodeCount = 3, prepare: (cluster: WaitingCluster) => void = () => {}) {
    this.cluster = new WaitingCluster(nodeCount);
    for (const node of this.cluster.nodes) node.listenMs = Infinity;
    prepare(this.cluster);
    const { wheel, nodes, events } = this.cluster;
    const voters = { nodes, wheel, quorum: quorumSize(nodeCount) };
    this.bell = new Bell(voters, (event) => void events.push(event));
  }

  /** How often each node was asked to tell. */
  get listened(): number[] {
    return this.cluster.nodes.map(({ listened }) => listened);
  }

  /** How often each node was asked to tell no longer. */
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

Deno.test("Bell draws its id: 20 characters without a colon", () => {
  const { bell, cluster } = new Bench();
  assertMatch(bell.id, /^[^:]{20}$/u);
  assert(cluster.values[0].startsWith(bell.id));
});

Deno.test("Bell asks no node before somebody waits, then each once, however many wait", () => {
  const bench = new Bench();
  assertEquals(bench.listened, [0, 0, 0]);
  const number = bench.bell.enter(bench.sleeper);
  assertEquals(bench.listened, [1, 1, 1]);
  assertNotEquals(bench.bell.enter(new LightSleeper()), number);
  bench.tell(0, 1, 2);
  bench.bell.enter(new LightSleeper());
  assertEquals(bench.listened, [1, 1, 1]);
});

for (const nodeCount of [1, 2, 3, 4, 5, 31]) {
  const quorum = quorumSize(nodeCount);
  Deno.test(`Bell of ${nodeCount} nodes is heard once ${quorum} tell, and not before`, () => {
    const bench = new Bench(nodeCount);
    bench.bell.enter(bench.sleeper);
    for (let number = 0; number < nodeCount; number++) {
      assertEquals(bench.bell.heard, number >= quorum, `${number}`);
      bench.tell(number);
    }
    assertEquals([bench.bell.heard, bench.sleeper.changes], [true, nodeCount]);
  });
}

Deno.test("Bell is not heard by the same node twice", () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  bench.tell(1, 1);
  assertEquals(bench.bell.heard, false);
});

// Settled

Deno.test("Bell is settled once each node tells, cannot or never will", () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  bench.tell(0);
  bench.cluster.nodes[1].deafen();
  assertEquals(bench.bell.settled, false);
  bench.cluster.nodes[2].refuse(REFUSAL);
  assertEquals([bench.bell.settled, bench.bell.heard, bench.sleeper.changes], [true, false, 3]);
});

Deno.test("Bell is settled 50 ms after a quorum tells, and says so", async () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  await bench.advance(900);
  bench.tell(0, 1);
  await bench.advance(49);
  assertEquals([bench.bell.settled, bench.sleeper.changes], [false, 2]);
  await bench.advance(1);
  assertEquals([bench.bell.settled, bench.sleeper.changes], [true, 3]);
});

Deno.test("Bell is settled after a second without a quorum, and says so", async () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  bench.tell(0);
  await bench.advance(999);
  assertEquals([bench.bell.settled, bench.sleeper.changes], [false, 1]);
  await bench.advance(1);
  assertEquals([bench.bell.settled, bench.bell.heard, bench.sleeper.changes], [true, false, 2]);
});

Deno.test("Bell that is settled stays so, whatever nodes tell later", async () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  await bench.advance(1_000);
  bench.tell(0, 1);
  assertEquals([bench.bell.settled, bench.bell.heard], [true, true]);
  bench.cluster.nodes[0].deafen();
  assertEquals([bench.bell.settled, bench.bell.heard], [true, false]);
});

Deno.test("Bell says nothing when the time for nodes is over that have told by then", async () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  bench.tell(0, 1, 2);
  await bench.advance(2_000);
  assertEquals(bench.sleeper.changes, 3);
});

Deno.test("Bell does not keep the process alive", async () => {
  const bench = new Bench();
  bench.bell.leave(bench.bell.enter(bench.sleeper));
  assertEquals(bench.cluster.clock.timersAlive, 0);
  await bench.advance(2_000);
  assertEquals(bench.cluster.clock.timersAlive, 0);
});

// Nodes that don't tell

Deno.test("Bell waits for no node that has no way to tell, and reports none", () => {
  const bench = new Bench(3, ({ nodes }) => Object.assign(nodes[1], { listen: undefined }));
  bench.bell.enter(bench.sleeper);
  assertEquals(bench.listened, [1, 0, 1]);
  bench.tell(0);
  assertEquals(bench.bell.settled, false);
  bench.tell(2);
  assertEquals([bench.bell.settled, bench.bell.heard], [true, true]);
  assertEquals(bench.cluster.events, []);
});

Deno.test("Bell reports a node that refuses once, and never asks it again", async () => {
  const bench = new Bench();
  const number = bench.bell.enter(bench.sleeper);
  bench.cluster.nodes[1].refuse(REFUSAL);
  bench.cluster.nodes[1].refuse(new Error("again"));
  assertEquals(bench.cluster.events as unknown[], [
    { type: "notify-refused", node: "node1", error: REFUSAL },
  ]);
  bench.bell.leave(number);
  await bench.advance(30_000);
  bench.bell.enter(bench.sleeper);
  assertEquals(bench.listened, [2, 1, 2]);
  bench.tell(0, 2);
  assertEquals([bench.bell.settled, bench.cluster.events.length], [true, 1]);
});

Deno.test("Bell without a listener takes a refusal all the same", () => {
  const { wheel, nodes } = new WaitingCluster(1);
  const bell = new Bell({ nodes, wheel, quorum: 1 }, undefined);
  nodes[0].refusal = REFUSAL;
  bell.enter(new LightSleeper());
  assertEquals([bell.settled, bell.heard], [true, false]);
});

Deno.test("Bell hears no more of a node that told and then refuses", () => {
  const bench = new Bench(1);
  bench.bell.enter(bench.sleeper);
  bench.tell(0);
  bench.cluster.nodes[0].refuse(REFUSAL);
  assertEquals([bench.bell.heard, bench.bell.settled, bench.sleeper.changes], [false, true, 2]);
});

Deno.test("Bell is not heard while nodes are deaf, and is again when they tell anew", () => {
  const bench = new Bench();
  bench.bell.enter(bench.sleeper);
  bench.tell(0, 1, 2);
  bench.cluster.nodes[0].deafen();
  assertEquals(bench.bell.heard, true);
  bench.cluster.nodes[1].deafen();
  assertEquals([bench.bell.heard, bench.sleeper.changes], [false, 5]);
  bench.tell(0);
  assertEquals([bench.bell.heard, bench.sleeper.changes], [true, 6]);
});

Deno.test("Bell tells all who wait of a change, and nobody who has left meanwhile for good", () => {
  const bench = new Bench();
  const { bell } = bench;
  const left = new LightSleeper();
  bell.leave(bell.enter(left));
  const others = [new LightSleeper(), new LightSleeper()];
  const numbers = others.map((sleeper) => bell.enter(sleeper));
  others[0].onBellChange = () => bell.leave(numbers[0]);
  bench.tell(0, 1);
  assertEquals([left.changes, others[1].changes], [0, 2]);
});

// Idle

Deno.test("Bell has nodes tell no longer once nobody has waited for 30 s", async () => {
  const bench = new Bench();
  const { bell } = bench;
  const numbers = [bell.enter(bench.sleeper), bell.enter(new LightSleeper())];
  bench.tell(0, 1, 2);
  bell.leave(numbers[0]);
  await bench.advance(60_000);
  bell.leave(numbers[1]);
  await bench.advance(29_999);
  assertEquals([bench.unlistened, bell.heard], [[0, 0, 0], true]);
  await bench.advance(1);
  assertEquals([bench.unlistened, bell.heard, bell.settled], [[1, 1, 1], false, false]);
  assertEquals(bench.cluster.wheel.size, 0);
});

Deno.test("Bell goes on when somebody waits again within 30 s, and counts them anew", async () => {
  const bench = new Bench();
  const { bell } = bench;
  bell.leave(bell.enter(bench.sleeper));
  await bench.advance(29_000);
  const number = bell.enter(bench.sleeper);
  await bench.advance(29_000);
  bell.leave(number);
  bell.leave(number); // does nothing more
  await bench.advance(29_999);
  assertEquals([bench.listened, bench.unlistened], [[1, 1, 1], [0, 0, 0]]);
  await bench.advance(1);
  assertEquals(bench.unlistened, [1, 1, 1]);
});

Deno.test("Bell that was idle asks anew, and waits for nodes as it did at first", async () => {
  const bench = new Bench();
  const { bell } = bench;
  bell.leave(bell.enter(bench.sleeper));
  bench.tell(0, 1);
  bench.cluster.nodes[2].deafen();
  await bench.advance(30_000);
  bell.enter(bench.sleeper);
  assertEquals([bench.listened, bell.settled, bell.heard], [[2, 2, 2], false, false]);
  await bench.advance(990);
  bench.tell(0, 1);
  await bench.advance(49);
  assertEquals([bell.settled, bell.heard], [false, true]);
  await bench.advance(1);
  assertEquals(bell.settled, true);
});

Deno.test("Bell that is idle takes no notice of a node that still begins to tell", async () => {
  const bench = new Bench(1);
  bench.bell.leave(bench.bell.enter(bench.sleeper));
  await bench.advance(30_000);
  bench.tell(0);
  assertEquals(bench.bell.heard, false);
});

// Wake-ups

Deno.test("Bell wakes the one whom it concerns", () => {
  const { bell, sleeper, cluster: { nodes } } = new Bench();
  const other = new LightSleeper();
  bell.enter(other);
  const entry = `${bell.id}:${bell.enter(sleeper)}:12:34`;
  nodes[2].wake(entry);
  assertEquals([sleeper.wakes, other.wakes], [[[2, entry]], []]);
  assertEquals(nodes[2].leaves, []);
});

for (const what of ["has left", "no longer wants it"]) {
  Deno.test(`Bell takes one who ${what} out of line where it is woken, so that the next is`, () => {
    const { bell, sleeper, cluster: { nodes } } = new Bench();
    const number = bell.enter(sleeper);
    if (what === "has left") bell.leave(number);
    sleeper.wants = false;
    const entry = `${bell.id}:${number}:1234`;
    nodes[1].enqueue("a", entry, "other:1");
    nodes[1].wake(entry);
    assertEquals(nodes.map(({ leaves }) => leaves), [[], [entry], []]);
    assertEquals([nodes[1].line(), nodes[1].wakes], [["other:1"], ["other:1"]]);
    assertEquals(sleeper.wakes.length, what === "has left" ? 0 : 1);
  });
}

Deno.test("Bell that wakes nobody is content with a node that knows no leaving", () => {
  const { bell, sleeper, cluster: { nodes } } = new Bench();
  bell.leave(bell.enter(sleeper));
  Object.assign(nodes[0], { leave: undefined });
  nodes[0].wake(`${bell.id}:1:1234`);
  assertEquals(sleeper.wakes, []);
});

Deno.test("Bell gives no number twice", () => {
  const { bell, sleeper } = new Bench();
  const numbers = Array.from({ length: 100 }, () => {
    const number = bell.enter(sleeper);
    bell.leave(number);
    return number;
  });
  assertEquals(new Set(numbers).size, 100);
});

// Contention

Deno.test("Bell remembers what others wanted until it is idle", async () => {
  const bench = new Bench();
  const { bell } = bench;
  assertEquals(bell.expectsContention("a"), false);
  const number = bell.enter(bench.sleeper);
  bell.noteContended("a");
  assertEquals([bell.expectsContention("a"), bell.expectsContention("b")], [true, false]);
  await bench.advance(60_000);
  bell.leave(number);
  await bench.advance(29_999);
  assertEquals(bell.expectsContention("a"), true);
  await bench.advance(1);
  assertEquals(bell.expectsContention("a"), false);
});

Deno.test("Bell remembers 4,096 contended lines, and forgets the oldest for one more", () => {
  const { bell } = new Bench();
  for (let index = 0; index < 4_096; index++) bell.noteContended(`${index}`);
  bell.noteContended("4095"); // known
  assertEquals(bell.expectsContention("0"), true);
  bell.noteContended("4096");
  assertEquals(["0", "1", "4096"].map((line) => bell.expectsContention(line)), [false, true, true]);
});

// Closing

Deno.test("Bell that is closed hears nothing, is settled, and opens nothing", () => {
  const bench = new Bench();
  const { bell } = bench;
  bell.enter(bench.sleeper);
  bench.tell(0, 1);
  bell.close();
  bench.tell(0, 1, 2);
  assertEquals([bell.closed, bell.heard, bell.settled], [true, false, true]);
  const fresh = new Bench();
  fresh.bell.close();
  fresh.bell.leave(fresh.bell.enter(fresh.sleeper));
  assertEquals([fresh.listened, fresh.cluster.wheel.size], [[0, 0, 0], 0]);
});
