import { assertEquals } from "@std/assert";
import { askNode } from "../../../src/quorum/ask_node.ts";
import { askToAcquire, createNodeSet, Round } from "../../../src/quorum/round.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { KeyspaceNode } from "../../support/keyspace_node.ts";

const TIMEOUT_MS = 100;

function setUp() {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const nodes = ["n0", "n1", "n2"].map((name) => new KeyspaceNode(name, clock));
  return { clock, wheel, nodes, nodeSet: createNodeSet(wheel, nodes) };
}

/** Has the event loop busy until long after the deadline; what the nodes answered lies in the sockets then. */
function blockLoop(clock: FakeClock, nodes: readonly KeyspaceNode[]): void {
  for (const node of nodes) node.mode = "hang";
  clock.block(3 * TIMEOUT_MS);
  clock.setTimer(() => nodes.forEach((node) => node.resume()), 0);
}

Deno.test("Round counts replies that came while the event loop was busy", async () => {
  const { clock, nodes, nodeSet } = setUp();
  for (const node of nodes) node.mode = "hang";
  const round = new Round(nodeSet, ["k"], "v", 1_000);
  const asked = round.ask(askToAcquire, TIMEOUT_MS);
  blockLoop(clock, nodes);
  await clock.advance(0);
  await asked;
  assertEquals([round.decision, round.granted, round.failed], ["granted", 3, 0]);
});

Deno.test("askNode() takes a reply that came while the event loop was busy", async () => {
  const { clock, wheel, nodes } = setUp();
  const [node] = nodes;
  node.set("k", "theirs", 10_000);
  node.mode = "hang";
  const asking = askNode(wheel, node, () => node.inspect("k"), TIMEOUT_MS);
  blockLoop(clock, [node]);
  await clock.advance(0);
  assertEquals((await asking).outcome, "answered");
});

Deno.test("a node that stays silent is given up right after a busy event loop all the same", async () => {
  const { clock, wheel, nodes, nodeSet } = setUp();
  for (const node of nodes) node.mode = "hang";
  const round = new Round(nodeSet, ["k"], "v", 1_000);
  const asked = round.ask(askToAcquire, TIMEOUT_MS);
  const asking = askNode(wheel, nodes[0], () => nodes[0].inspect("k"), TIMEOUT_MS);
  clock.block(3 * TIMEOUT_MS);
  await clock.advance(0);
  await asked;
  assertEquals(round.votes.map(({ outcome }) => outcome), ["timed-out", "timed-out", "timed-out"]);
  assertEquals((await asking).outcome, "timed-out");
});
