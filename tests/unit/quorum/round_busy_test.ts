import { assertEquals } from "@std/assert";
import { askNode } from "../../../src/quorum/ask_node.ts";
import { createNodeSet } from "../../support/node_set.ts";
import { askToAcquire, Round } from "../../../src/quorum/round.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { KeyspaceNode } from "../../support/keyspace_node.ts";

const TIMEOUT_MS = 100;

for (const answered of [true, false]) {
  Deno.test(`after a busy event loop nodes that ${answered ? "answered meanwhile count" : "stay silent are given up right away"}`, async () => {
    const clock = new FakeClock();
    const wheel = new TimerWheel(clock);
    const nodes = ["n0", "n1", "n2"].map((name) => new KeyspaceNode(name, clock));
    for (const node of nodes) node.mode = "hang";
    const round = new Round(createNodeSet(wheel, nodes), ["k"], "v", 1_000);
    const asked = round.ask(askToAcquire, TIMEOUT_MS);
    const asking = askNode(wheel, nodes[0], () => nodes[0].inspect("k"), TIMEOUT_MS);
    clock.block(3 * TIMEOUT_MS); // what the nodes answered is in the sockets then
    if (answered) clock.setTimer(() => nodes.forEach((node) => node.resume()), 0);
    await clock.advance(0);
    await asked;
    assertEquals([round.granted, round.failed], answered ? [3, 0] : [0, 3]);
    assertEquals((await asking).outcome, answered ? "answered" : "timed-out");
  });
}
