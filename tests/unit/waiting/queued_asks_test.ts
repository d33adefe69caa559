import { assert, assertEquals, assertGreater, assertLess, assertLessOrEqual } from "@std/assert";
import type { RedlockOptions } from "../../../src/options.ts";
import { quorumSize } from "../../../src/vote.ts";
import { blocked, Callers } from "../../support/callers.ts";
import { OTHER_VALUE } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

/** The constants of which these tests say no more than what they promise. */
const PATIENCE_MS = 50;
/** By how much later it asks if a quorum of nodes says that another's turn has begun, or fewer. */
const QUORUM_LATER_MS = 2, MINORITY_LATER_MS = 200;
const STAGGER_MS = 20;
const IDLE_MS_MAX = 60_000;

/** Tickets of other clients. */
function others(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `other:${index}`);
}

// Notified

for (const nodeCount of [1, 2, 3, 5]) {
  Deno.test(`a call on ${nodeCount} nodes asks at once when the first of them notifies it, and keeps to the order`, async () => {
    const callers = await blocked(["first"], {}, nodeCount, (nodes) => {
      for (const node of nodes) node.replyMs = 10;
    });
    const [waitedMs, priority] = await callers.asksAfter(() => {
      for (const node of callers.nodes.slice(0, -1)) node.delete("a"); // and notify nobody
      callers.nodes.at(-1)!.free();
    });
    assertEquals([waitedMs, priority, callers.won], [0, "in-order", ["first"]]);
    assertEquals(callers.nodes.map((node) => node.queue()), Array(nodeCount).fill([]));
  });

  Deno.test(`a call on ${nodeCount} nodes that was notified and still denied asks once a quorum has notified it, or a round trip later`, async () => {
    const callers = await blocked(["first"], {}, nodeCount, (nodes) => {
      for (const node of nodes) node.replyMs = 10;
    });
    const quorum = quorumSize(nodeCount);
    const { nodes } = callers;
    const [first] = await callers.asksAfter(() => callers.notify([nodes[0]]), 100);
    const asked = callers.asked()[0];
    for (let number = 0; number < quorum; number++) {
      assertEquals([first, callers.asked()[0]], [0, asked]);
      callers.notify([nodes[number], nodes[number]]); // the same one twice counts once
      await runMicrotasks();
    }
    assertEquals(callers.asked()[0], asked + 1);
    await callers.advance(100);
    if (quorum === 1) return;
    const [waitedMs = NaN] = await callers.asksAfter(() => {
      callers.notify([nodes[1]]);
      callers.clock.setTimer(() => callers.notify([nodes[1]]), 8);
    }, 100);
    assert(waitedMs >= 5 && waitedMs <= 15, `${waitedMs} ms for round trips of 10`);
  });
}

Deno.test("a call that is notified while it asks asks again at once", async () => {
  const callers = new Callers();
  for (const node of callers.nodes) node.replyMs = 10;
  callers.occupy();
  callers.call("first");
  await callers.advance(15);
  assertEquals(callers.asksMs(callers.nowMs), [-15, -5]);
  const [waitedMs] = await callers.asksAfter(
    () => callers.notify([callers.nodes[2]], "beside"),
    100,
  );
  assertEquals(waitedMs, 5); // as soon as it is denied
});

Deno.test("a call that too few nodes answered takes no notice of notifications until a quorum of nodes has sent one", async () => {
  const callers = await blocked(["first"], { retryDelayMs: 60_000, retryDelayMaxMs: 60_000 });
  const [alive, ...others] = callers.nodes;
  for (const node of others) node.mode = "fail";
  callers.notify([alive]);
  await callers.advance(1);
  const asks = callers.asksMs().length;
  for (let ms = 0; ms < 1_000; ms++) {
    callers.notify([alive], ms % 2 === 0 ? "turn" : "watch");
    await callers.advance(1);
  }
  assertEquals(callers.asksMs().length, asks);
  for (const node of others) node.resume();
  const [waitedMs] = await callers.asksAfter(() => callers.notify(others.slice(1)));
  assertEquals(waitedMs, 0);
});

Deno.test("a call that fails because nodes are in quarantine follows their notifications rarely", async () => {
  const limits = { retryDelayMs: 60_000, retryDelayMaxMs: 60_000, restartGuardMs: 2_000_000 };
  const callers = await blocked(["first"], limits);
  const [alive, ...young] = callers.nodes;
  for (const node of callers.nodes) node.delete("a");
  for (const node of young) node.quarantined = true;
  callers.notify([alive]);
  await callers.advance(1);
  const asks = callers.asksMs().length;
  for (let times = 0; times < 2_000; times++) {
    callers.notify(callers.nodes);
    await callers.advance(1);
  }
  const more = callers.asksMs().length - asks;
  assert(more >= 4 && more <= 100, `${more} asks`);
  for (const node of young) node.quarantined = false;
  await callers.asksAfter(() => callers.notify(callers.nodes), 250);
  assertEquals(callers.won, ["first"]);
});

Deno.test("a call that too few nodes answered asks again in another turn of the event loop, even if its delay is over when it would wait", async () => {
  const callers = new Callers({ retryDelayMaxMs: 200 }, 3, (nodes) => {
    for (const node of nodes) node.refusal = new Error("NOPERM");
  });
  const { clock, nodes: [alive] } = callers;
  callers.set("fail", 1, 2);
  clock.monotonicMs = () => clock.nowMs += 1_000; // the process stands still at each look
  const controller = new AbortController();
  let asks = 0;
  alive.before.acquire = () => void (++asks === 100 && controller.abort()); // or it asks for ever
  callers.call("first", { signal: controller.signal });
  await runMicrotasks();
  assertEquals(asks, 1);
});

Deno.test("a first whose vote was split twice follows notifications rarely, but before its turn is over, and at once if a quorum has its turn", async () => {
  const callers = await blocked(["first"], {}, 3, (nodes) => {
    nodes[0].refusal = new Error("NOPERM"); // it grants beside its queue
    for (const node of nodes) node.replyMs = 10;
  });
  const [granting, ...others] = callers.nodes;
  granting.delete("a");
  granting.before.release = () => callers.notify(others.slice(1)); // as the next one's undo does
  const startMs = callers.nowMs;
  const asked = callers.asksMs().length;
  callers.notify(others.slice(1));
  await callers.advance(1_000);
  const [first, second, ...later] = callers.asksMs(startMs).slice(asked);
  assertEquals([first, second], [0, 20]);
  assert(later.length >= 15 && later.length <= 35, `${later.length} asks in a second`);
  granting.before.release = undefined;
  await callers.advance(100); // the last ask is over
  for (const node of others) node.delete("a");
  const [waitedMs] = await callers.asksAfter(() => callers.notify(others));
  assertEquals([waitedMs, callers.won], [0, ["first"]]);
});

Deno.test("a first whose vote is split for long, and that nobody notifies, asks as often as it would poll at the rarest", async () => {
  const callers = await blocked(["first"], { retryDelayMaxMs: 2_000 });
  callers.nodes[0].delete("a");
  const startMs = callers.nowMs;
  callers.notify(callers.nodes.slice(0, 1)); // its ask splits the vote
  await callers.advance(60_000);
  const asksMs = callers.asksMs(startMs);
  const gapsMs = asksMs.map((askMs, index) => askMs - (asksMs[index - 1] ?? 0));
  assert(Math.max(...gapsMs) <= 3_000, `${gapsMs}`); // 'retryDelayMaxMs', and half of it
  assert(asksMs.length >= 20 && asksMs.length <= 60, `${asksMs.length}`);
});

Deno.test("a call for two keys of which others had one when it asked, so that the vote was split, uses its turn at once", async () => {
  const callers = new Callers({}, 3, ([granting]) => granting.refusal = new Error("NOPERM"));
  callers.occupy();
  callers.call("first", {}, ["a", "b"]);
  await callers.advance(1_000);
  callers.nodes[0].delete("a");
  await callers.asksAfter(() => callers.notify(callers.nodes.slice(1)), 1);
  for (const node of callers.nodes) node.delete("a");
  await callers.asksAfter(() => callers.notify(callers.nodes.slice(1)), 1);
  assertEquals(callers.won, ["first"]);
});

// The first in the queue that does not use its turn

for (
  const [firstMs, replyMs] of [[undefined, 0], [undefined, 400], [50, 4], [290, 4], [5_000, 4]]
) {
  Deno.test(`a call waits for a first in the queue whose patience is ${firstMs} ms, and then overtakes it: replies take ${replyMs} ms`, async () => {
    const callers = await blocked(["first"], {}, 3, (nodes) => {
      for (const node of nodes) {
        node.enqueue("a", firstMs ? `stuck:1:${firstMs}` : "stuck:1");
        node.replyMs = replyMs!;
      }
    });
    await callers.advance(1_000);
    const [waitedMs = NaN, priority] = await callers.asksAfter(() => callers.free());
    const patienceMs = Math.min(firstMs ?? PATIENCE_MS, 1_000); // its own distance does not matter
    assert(waitedMs >= patienceMs && waitedMs <= patienceMs + 2, `${waitedMs}, ${patienceMs}`);
    assertEquals([priority, callers.won, callers.queueLengths], ["in-order", ["first"], [0, 0, 0]]);
  });
}

for (const [taken, waitedMs] of [[1, 100 + PATIENCE_MS + QUORUM_LATER_MS], [2], [3]]) {
  Deno.test(`a call ${waitedMs ? "overtakes" : "leaves alone"} a first in the queue of which ${taken} of 3 nodes say that it has the key`, async () => {
    const callers = await blocked(["first"]);
    const { nodes, clock } = callers;
    const [actualMs] = await callers.asksAfter(() => {
      clock.setTimer(() => callers.notify(nodes, "watch"), 100);
      clock.setTimer(() => callers.notify(nodes.slice(0, taken), "taken"), 110);
    });
    assertEquals(actualMs, waitedMs);
  });
}

Deno.test("a call that finds the key free leaves alone a first in the queue that a quorum says has taken it since", async () => {
  const callers = await blocked(["first"], {}, 3, (nodes) => {
    for (const node of nodes) {
      node.enqueue("a", "other:1");
      node.replyMs = 10;
    }
  });
  for (const node of callers.nodes) node.delete("a");
  const { length } = callers.asksMs();
  callers.notify([callers.nodes[0]]);
  await callers.advance(5);
  callers.notify(callers.nodes, "taken");
  await callers.advance(10_000);
  assertEquals(callers.asksMs().length, length + 1);
});

for (const [ahead, behind, steps] of [[1, 0, 1], [30, 0, 2], [30, 1, 30]]) {
  Deno.test(`a call with ${ahead} tickets ahead and ${behind} behind asks when the key expires that another took, later by ${steps} steps`, async () => {
    const callers = await blocked(["first"], {}, 3, (nodes) => {
      for (const node of nodes) node.enqueue("a", ...others(ahead));
    });
    if (behind > 0) {
      for (const node of callers.nodes) node.enqueue("a", "behind:1");
      await callers.asksAfter(() => callers.notify(callers.nodes));
    }
    const [waitedMs] = await callers.asksAfter(() => {
      for (const node of callers.nodes) node.notify(callers.ticket, "taken", 500);
    });
    assertEquals(waitedMs, 500 + STAGGER_MS * steps);
  });
}

for (const [saying, laterMs] of [[1, MINORITY_LATER_MS], [2, QUORUM_LATER_MS]]) {
  Deno.test(`a call is patient again with each release that ${saying} of 3 nodes report, and not with one that a slow node reports late`, async () => {
    const callers = await blocked(["first"]);
    const { nodes, clock } = callers;
    const [waitedMs, priority] = await callers.asksAfter(() => {
      clock.setTimer(() => callers.notify(nodes.slice(0, 2), "watch"), 100);
      clock.setTimer(() => callers.notify(nodes.slice(0, 2), "taken"), 110);
      clock.setTimer(() => callers.notify([nodes[2]], "watch"), 120);
      clock.setTimer(() => callers.notify(nodes.slice(0, saying), "watch"), 1_000);
    });
    assertEquals([waitedMs, priority], [1_000 + PATIENCE_MS + laterMs, "in-order"]);
  });
}

Deno.test("a call on 5 nodes is as patient if two of them are slow, and report late who had the key before", async () => {
  const callers = await blocked(["first"], {}, 5);
  const [one, other, third, ...slow] = callers.nodes;
  const [waitedMs] = await callers.asksAfter(() => {
    callers.notify([one, other, third], "taken");
    callers.notify([one, other], "watch");
    for (const node of slow) {
      callers.notify([node], "taken");
      callers.notify([node], "watch");
    }
    callers.clock.setTimer(() => callers.notify([third], "watch"), 20);
  });
  assertEquals(waitedMs, PATIENCE_MS + QUORUM_LATER_MS);
});

for (
  const [ahead, firstMs, steps, ...behind] of [
    [1, 50, 0],
    [2, 100, 1],
    [5, 150, 4],
    [30, 150, 15],
    [100, 150, 15],
    [30, 200, 29, "behind:1"],
  ] as const
) {
  Deno.test(`a call that finds the key free, ${ahead} tickets ahead and ${behind.length} behind overtakes them, with a little more patience for more of them`, async () => {
    const callers = await blocked(["first"], {}, 3, (nodes) => {
      for (const node of nodes) node.enqueue("a", ...others(ahead));
    });
    for (const node of callers.nodes) {
      node.enqueue("a", ...behind);
      node.delete("a"); // and notify nobody
    }
    const startMs = callers.nowMs;
    callers.notify([callers.nodes[0]]);
    await callers.advance(10_000);
    const [found, overtook, ...rest] = callers.asksMs(startMs).slice(2);
    const patienceMs = firstMs + STAGGER_MS * steps;
    assert(overtook >= patienceMs && overtook <= patienceMs + 2, `${overtook}`);
    assertEquals([found, rest, callers.priorities.at(-1)], [0, [], "in-order"]);
    assertEquals([callers.won, callers.nodes[0].queue()], [["first"], [...behind]]);
  });
}

Deno.test("a call that finds the key free asks when the turns of a first that is stuck are over on a quorum", async () => {
  const callers = await blocked(["first"], {}, 3, (nodes) => {
    nodes.forEach((node, index) => node.enqueue("a", `stuck:1:${[50, 200, 400][index]}`));
  });
  for (const node of callers.nodes) node.delete("a"); // and notify nobody
  const startMs = callers.nowMs;
  callers.notify([callers.nodes[0]]);
  await callers.advance(1_000);
  const [found, overtook] = callers.asksMs(startMs).slice(2);
  assert(found === 0 && overtook >= 200 && overtook <= 202, `${found}, ${overtook}`);
});

Deno.test("a call asks when the turn of a first that is stuck is over, though the node that grants has not answered", async () => {
  const callers = await blocked(["first"], {}, 3, ([one]) => one.enqueue("a", "stuck:1:50"));
  const [one, , slow] = callers.nodes;
  for (const node of [one, slow]) node.delete("a");
  slow.replyMs = 30;
  callers.notify([one]);
  await callers.advance(200);
  assertEquals(callers.won, ["first"]);
});

// Keys that expire, and idleness

for (const [ahead, steps] of [[0, 0], [1, 1], [7, 2]]) {
  Deno.test(`the last of the queue asks when a quorum of the keys has expired, later by ${steps} steps with ${ahead} tickets ahead`, async () => {
    const callers = new Callers({}, 5);
    callers.nodes.forEach((node, index) => {
      node.set("a", OTHER_VALUE, [300, 500, 700, 900, Infinity][index]);
      node.enqueue("a", ...others(ahead));
    });
    callers.call("first");
    const startMs = callers.nowMs;
    await callers.advance(1_000);
    const laterMs = callers.asksMs(startMs)[2] - 700 - STAGGER_MS * steps;
    assert(laterMs >= 0 && laterMs <= 2, `${laterMs} ms after the quorum expired`);
  });
}

Deno.test("a call asks when as many keys have expired as make a quorum with the nodes that have not answered", async () => {
  const callers = new Callers({ retryDelayMaxMs: 60_000 });
  const [one, other, slow] = callers.nodes;
  one.set("a", OTHER_VALUE, 40_000);
  other.set("a", OTHER_VALUE, 2_000);
  slow.replyMs = 30; // the key is free there
  callers.call("first");
  await callers.advance(5_000);
  const asksMs = callers.asksMs(callers.nowMs - 3_000);
  assert(asksMs.some((ms) => ms >= 0 && ms <= 100), `${asksMs}`);
});

Deno.test("of those that wait for a key that is extended again and again, the first three and the last ask each time that it should have expired, and the others ever more rarely", async () => {
  const counts = [];
  for (const [ahead, behind] of [[0, 1], [2, 1], [30, 0], [3, 1], [30, 1]]) {
    const callers = new Callers({ retryDelayMaxMs: 60_000 });
    for (const node of callers.nodes) node.enqueue("a", ...others(ahead));
    const extend = () => callers.nodes.forEach((node) => node.set("a", OTHER_VALUE, 3_000));
    extend();
    callers.call("first");
    for (let second = 0; second < 60; second++) {
      await callers.advance(1_000);
      extend();
      if (second > 0 || behind === 0) continue;
      for (const node of callers.nodes) node.enqueue("a", "behind:1:50");
    }
    counts.push(callers.asksMs().length - 2);
  }
  assert(counts.slice(0, 3).every((count) => count >= 19), `${counts}`);
  assert(counts.slice(3).every((count) => count >= 3 && count <= 6), `${counts}`);
});

/** The times between the asks of a call, from the one on with which it joined the queues. */
async function waitsMs(
  forMs: number,
  options: RedlockOptions,
  prepare: (nodes: KeyspaceNode[]) => void,
  fraction = 0.5,
): Promise<number[]> {
  const callers = new Callers(options);
  callers.fraction = fraction;
  callers.occupy();
  prepare(callers.nodes);
  callers.call("first");
  await callers.advance(forMs);
  const asksMs = callers.asksMs().slice(1);
  return asksMs.slice(1).map((askMs, index) => askMs - asksMs[index]);
}

Deno.test("a call to which nothing happens asks ever more rarely, one further behind more rarely still, and never later than a minute", async () => {
  let before = 0;
  for (const ahead of [0, 1, 4]) {
    const waits = await waitsMs(600_000, { retryDelayMaxMs: 2_000 }, (nodes) => {
      for (const node of nodes) node.enqueue("a", ...others(ahead));
      nodes[2].replyMs = 5; // it asks no more rarely because of a third answer
    });
    assert(waits[0] >= 1_000 * (1 + ahead) && waits[0] <= 2_000 * (1 + ahead), `${waits}`);
    assertGreater(waits[1], 1.9 * waits[0]);
    assertEquals(waits, waits.toSorted((one, other) => one - other));
    assertGreater(waits.at(-1)!, IDLE_MS_MAX / 2);
    assertLessOrEqual(waits.at(-1)!, IDLE_MS_MAX);
    assertGreater(waits[0], before);
    before = waits[0];
  }
});

Deno.test("a call to which nothing has happened for long asks soon again once it was notified in vain", async () => {
  const callers = await blocked(["first"], { retryDelayMaxMs: 2_000 });
  await callers.advance(600_000);
  await callers.asksAfter(() => callers.notify(callers.nodes), 1);
  const [waitedMs = Infinity] = await callers.asksAfter(() => {}, 5_000);
  assertLessOrEqual(waitedMs, 2_000);
});

Deno.test("a call that has asked often asks soon again when too few nodes answer it, and when they do so next time", async () => {
  const callers = await blocked(["first"], { retryDelayMs: 100, retryDelayMaxMs: 60_000 });
  for (let times = 0; times < 10; times++) {
    await callers.asksAfter(() => callers.notify(callers.nodes), 100);
  }
  for (let times = 0; times < 2; times++) {
    callers.set("fail", 1, 2);
    await callers.asksAfter(() => callers.notify(callers.nodes), 1);
    const [waitedMs = Infinity] = await callers.asksAfter(() => {}, 60_000);
    assertLessOrEqual(waitedMs, 100);
    for (const node of callers.nodes) node.resume();
    await callers.advance(60_000);
  }
});

Deno.test("a call that a minority grants does not wake itself, and asks soon, then ever more rarely, at moments that differ", async () => {
  const firstMs = new Set<number>();
  for (const fraction of [0, 0.5, 0.99]) {
    const waits = await waitsMs(20_000, {}, (nodes) => {
      nodes[0].delete("a");
      for (const node of nodes) node.replyMs = 5;
    }, fraction);
    assertLessOrEqual(waits[0], 4 * 10 * 1.5);
    for (const index of [1, 2, 3]) assertGreater(waits[index], 2 * waits[index - 1]);
    assertLess(waits.length, 10);
    firstMs.add(waits[0]);
  }
  assertEquals(firstMs.size, 3);
});
