import { assert, assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { quorumSize } from "../../../src/vote.ts";
import { blocked, Callers, held } from "../../support/callers.ts";
import { REASON } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

const RECOVERY_MS = 50;
const REFUSAL = new Error("NOPERM");
const UNABLE = { subscribe: undefined };

const subscribes = ({ nodes }: Callers) => nodes.map(({ subscribes }) => subscribes);
const unsubscribes = ({ nodes }: Callers) => nodes.map(({ unsubscribes }) => unsubscribes);

// Until it is known which nodes notify

for (
  const [what, prepare, readyMs] of [
    ["until all nodes are subscribed", () => {}, 10],
    ["until 50 ms after a quorum is", (nodes) => nodes[2].subscribeMs = Infinity, 60],
    ["until the last has refused", (nodes) => nodes[2].refusal = REFUSAL, 10],
    ["unless the last never notifies", (nodes) => Object.assign(nodes[2], UNABLE), 10],
    ["for a second if too few are", (nodes) => {
      nodes[1].subscribeMs = nodes[2].subscribeMs = Infinity;
    }, 1_000],
  ] as const satisfies [string, (nodes: KeyspaceNode[]) => unknown, number][]
) {
  Deno.test(`a call that expects others to wait holds its first attempt back ${what}`, async () => {
    const callers = await held("second");
    for (const node of callers.nodes) {
      node.enqueue("a", "other:1");
      node.subscribeMs = 10;
    }
    prepare(callers.nodes);
    const startMs = callers.nowMs;
    await callers.release("first");
    await callers.advance(2_000);
    const askedMs = callers.asksMs(startMs)[1];
    assert(askedMs >= Math.min(readyMs, 50) && askedMs <= readyMs, `${askedMs}`);
    assertEquals(callers.priorities[1], readyMs < 1_000 ? "in-order" : "none");
  });

  Deno.test(`a call that was denied polls, ever more rarely, ${what}`, async () => {
    const callers = new Callers();
    for (const node of callers.nodes) [node.subscribeMs, node.replyMs] = [10, 1];
    prepare(callers.nodes);
    callers.occupy();
    callers.call("first");
    await callers.advance(readyMs);
    assertGreater(callers.asked()[0], readyMs > 100 ? 1 : 0);
    assertLessOrEqual(callers.asked()[0], 3 + Math.log2(1 + readyMs / 4));
    await callers.advance(200);
    assertEquals(callers.queueLengths.filter(Boolean).length >= 2, readyMs < 1_000);
    const [waitedMs] = await callers.asksAfter(() => {});
    assertEquals(waitedMs === undefined, readyMs < 1_000); // else it goes on polling
  });
}

Deno.test("a call that holds its first attempt back ends when its time is over or its signal aborts, and goes on alone", async () => {
  for (const ends of ["time", "signal"]) {
    const callers = await held();
    const controller = new AbortController();
    callers.call("second", { waitMs: 100, signal: controller.signal });
    for (const node of callers.nodes) {
      node.enqueue("a", "other:1");
      node.subscribeMs = Infinity;
    }
    await callers.advance(0);
    await callers.release("first");
    await callers.advance(50);
    if (ends === "signal") controller.abort(REASON);
    await callers.advance(50);
    // by its last attempt
    assertEquals(callers.won, ends === "time" ? ["first", "second"] : ["first"]);
    assertEquals(callers.errors.get("second"), ends === "time" ? undefined : REASON);
    assertEquals(callers.clock.timersAlive, 0);
  }
});

for (const nodeCount of [1, 2, 3, 4, 5]) {
  const quorum = quorumSize(nodeCount);
  Deno.test(`a call on ${nodeCount} nodes polls unless ${quorum} of them notify it`, async () => {
    for (const subscribed of [quorum - 1, quorum]) {
      const callers = await blocked(["first"], {}, nodeCount, (nodes) => {
        for (const node of nodes.slice(subscribed)) node.refusal = REFUSAL;
      });
      const [waitedMs] = await callers.asksAfter(() => {});
      assertEquals(waitedMs === undefined, subscribed === quorum, `${waitedMs}`);
    }
  });
}

// Nodes that come and go

Deno.test("a call does not ask when a node comes and goes, while a quorum with its ticket can notify it", async () => {
  const callers = await blocked();
  const asked = callers.asked();
  for (let flaps = 0; flaps < 20; flaps++) {
    callers.nodes[1].cut();
    await callers.advance(50);
    callers.nodes[1].confirm();
    await callers.advance(50);
  }
  assertEquals(callers.asked(), asked);
});

Deno.test("a call asks soon when nodes are back after a quorum could no longer notify it", async () => {
  const callers = await blocked();
  const flap = () => {
    callers.nodes[2].cut();
    callers.nodes[2].confirm();
  };
  for (let times = 0; times < 3; times++) {
    const [waitedMs = Infinity] = await callers.asksAfter(() => {
      for (const node of callers.nodes.slice(0, 2)) node.cut();
      for (const node of callers.nodes.slice(0, 2)) node.confirm();
      for (let ms = 10; ms < RECOVERY_MS; ms += 10) callers.clock.setTimer(flap, ms);
    }, RECOVERY_MS * 2 ** times);
    assertLessOrEqual(waitedMs, RECOVERY_MS * 2 ** times);
    assertEquals(callers.queueLengths, [1, 1, 1]);
  }
});

Deno.test("a call that takes the place of one that gave up polls as if no call had polled before", async () => {
  const limits = { retryDelayMs: 100, retryDelayMaxMs: 60_000 };
  const callers = new Callers(limits, 3, (nodes) => {
    for (const node of nodes) node.refusal = new Error("NOPERM");
  });
  callers.occupy();
  callers.call("first", { waitMs: 50_000 });
  callers.call("second");
  await callers.advance(50_000);
  assertEquals(callers.errors.size, 1);
  const [waitedMs = Infinity] = await callers.asksAfter(() => {}, 60_000);
  assertLessOrEqual(waitedMs, 100);
});

Deno.test("a call polls ever more rarely, not each time that nodes cannot be reached again", async () => {
  const callers = await blocked(["first"], { retryDelayMs: 100, retryDelayMaxMs: 60_000 });
  const asks = callers.asksMs().length;
  for (let times = 0; times < 2_000; times++) {
    for (const node of callers.nodes.slice(0, 2)) node.cut();
    await callers.advance(1);
  }
  const polls = callers.asksMs().length - asks;
  assert(polls >= 3 && polls <= 8, `${polls}`); // each limit is double the one before
});

Deno.test("a call asks when nodes have come and gone one after the other, once they are a quorum", async () => {
  const callers = await blocked(["first"], {}, 5);
  const { ticket } = callers;
  for (const [index, node] of callers.nodes.slice(0, 3).entries()) {
    const [waitedMs] = await callers.asksAfter(() => {
      node.cut();
      node.drop("a", ticket);
      node.confirm();
    }, RECOVERY_MS + 10);
    assertEquals(waitedMs !== undefined, index === 2);
  }
});

Deno.test("a call polls by its settings while too few nodes can notify it, or answered to say how long to wait", async () => {
  for (const fault of ["cut", "fail"]) {
    const callers = await blocked();
    if (fault === "cut") { for (const node of callers.nodes.slice(1)) node.cut(); }
    else {
      callers.set("fail", 0, 1);
      callers.notify([callers.nodes[2]]);
    }
    const startMs = callers.nowMs;
    await callers.advance(5_000);
    const asksMs = [0, ...callers.asksMs(startMs).slice(2)];
    assertGreater(asksMs.length, 4);
    asksMs.slice(1).forEach((askMs, index) => {
      assertLessOrEqual(askMs - asksMs[index], 200 * 2 ** (index + 2) + 5);
    });
  }
});

Deno.test("a call learns how long to wait from nodes that answer after the round was decided", async () => {
  const callers = new Callers({ nodeTimeoutMs: 500, retryDelayMs: 60_000 }, 4);
  callers.occupy("a", 20_000);
  callers.nodes.forEach((node, index) => node.replyMs = [1, 1, 40, 40][index]);
  callers.call("first");
  await callers.advance(15_000);
  const asked = callers.asked();
  const [waitedMs] = await callers.asksAfter(() => {});
  assert(waitedMs && waitedMs >= 4_900 && waitedMs <= 5_100, `${waitedMs}`);
  assertLessOrEqual(asked[0], 5);
});

Deno.test("a call polls if too few nodes have its ticket that can still notify it when they answer", async () => {
  const callers = await blocked();
  callers.set("fail", 0);
  callers.nodes[2].replyMs = 5;
  const [waitedMs] = await callers.asksAfter(() => {
    callers.notify(callers.nodes);
    callers.clock.setTimer(() => callers.nodes[2].cut(), 3);
  }, 1);
  assertEquals(waitedMs, 0);
  const [polledMs] = await callers.asksAfter(() => {}, 1_000);
  assert(polledMs !== undefined);
});

// Subscribing and unsubscribing

Deno.test("a client subscribes once to each node when a call first waits, and unsubscribes when none has waited for 30 s", async () => {
  const callers = await blocked(["first"], { waitMs: 2_000 });
  callers.occupy("b");
  callers.call("other", {}, "b");
  await callers.advance(1);
  assertEquals(callers.priorities.at(-1), "in-order"); // with its ticket, as soon as it was denied
  await callers.advance(5_000);
  assertEquals([subscribes(callers), callers.errors.size], [[1, 1, 1], 2]);
  assertEquals(callers.clock.timersAlive, 0); // the subscription does not keep the process alive
  await callers.advance(25_000);
  callers.call("again", { waitMs: 20_000 });
  await callers.advance(49_000);
  assertEquals([subscribes(callers), unsubscribes(callers)], [[1, 1, 1], [0, 0, 0]]);
  await callers.advance(2_000);
  assertEquals([unsubscribes(callers), callers.wheel.size], [[1, 1, 1], 0]);
  for (const node of callers.nodes) node.confirm(); // late, and of no use
  callers.call("polls", { notify: false, waitMs: 100 });
  await callers.advance(200);
  assertEquals(subscribes(callers), [1, 1, 1]);
  for (const node of callers.nodes) node.subscribeMs = 1_200;
  callers.call("later");
  await callers.advance(1_100);
  assertEquals(callers.priorities.at(-1), "none");
  await callers.advance(500);
  assertEquals([subscribes(callers), callers.queueLengths], [[2, 2, 2], [1, 1, 1]]);
});

Deno.test("a node that refuses is reported once; one without subscriptions is not reported", async () => {
  const callers = await blocked(["first"], { waitMs: 2_000 }, 7, (nodes) => {
    nodes[1].refusal = REFUSAL;
    Object.assign(nodes[2], { subscribe: undefined });
  });
  callers.nodes[0].refuse(REFUSAL); // although it was subscribed
  callers.nodes[1].refuse(new Error("again"));
  await runMicrotasks();
  const refusals = () => callers.events.filter(({ type }) => type === "notify-refused");
  const refused = ["node1", "node0"].map((node) => ({
    type: "notify-refused",
    node,
    error: REFUSAL,
  }));
  assertEquals(refusals() as unknown[], refused);
  await callers.advance(40_000);
  callers.call("second");
  await callers.advance(1_000);
  assertEquals([subscribes(callers), refusals().length], [[2, 2, 0, 2, 2, 2, 2], 2]);
});

Deno.test("close() while nodes are asked to subscribe leaves no timer, whatever they do then", async () => {
  const callers = new Callers();
  for (const node of callers.nodes) node.subscribeMs = 10;
  callers.occupy();
  callers.call("first");
  await callers.advance(5);
  await callers.close();
  await callers.advance(10);
  assertEquals(callers.error<Error & { code: string }>("first").code, "CLOSED");
  assertEquals([callers.clock.timers, callers.wheel.size], [0, 0]);
});
