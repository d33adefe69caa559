import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { QueuedWaiter } from "../../../src/waiting/queued_waiter.ts";
import { Contention } from "../../../src/waiting/contention.ts";
import { type LocalQueues, queueKey } from "../../../src/waiting/local_queues.ts";
import { type RedlockOptions, resolveOptions, type Settings } from "../../../src/options.ts";
import { type ClientState, createClientState } from "../../../src/client_state.ts";
import { Round } from "../../../src/quorum/round.ts";
import { PollingWaiter } from "../../../src/waiting/polling.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";
import { WaitingCluster } from "../../support/waiting_nodes.ts";

/** The lines of a client, and callers who write down how their wait ended. */
class Bench {
  readonly cluster: WaitingCluster;
  readonly electorate: ClientState;
  readonly localQueues: LocalQueues;
  readonly contention: Contention;
  /** Who came first, and who left, in order. */
  readonly told: string[] = [];

  constructor(prepare: (cluster: WaitingCluster) => void = () => {}) {
    this.cluster = new WaitingCluster();
    prepare(this.cluster);
    this.electorate = createClientState(this.cluster.wheel, this.cluster.nodes);
    this.localQueues = this.electorate.localQueues;
    this.contention = new Contention(this.localQueues, this.electorate, undefined);
  }

  /** A caller that waits in the line of that name. */
  caller(who: string, limitMs = Infinity, signal?: AbortSignal, name = "a"): object {
    const caller = { who };
    this.contention.wait(name, caller, limitMs, signal).then((first) => {
      this.told.push(`${who} ${first ? "is first" : "left"}`);
    });
    return caller;
  }

  settings(options: RedlockOptions = {}): Settings {
    return resolveOptions("test", options);
  }

  /** An attempt at "a". */
  round(): Round {
    return new Round(this.electorate, ["a"], "value", 1_000);
  }
}

// Names

for (
  const [one, other, same] of [
    [["a"], ["a"], true],
    [["a"], ["b"], false],
    [["a", "b"], ["b", "a"], true],
    [["a", "b", "c"], ["c", "a", "b"], true],
    [["a", "b"], ["a"], false],
    [["a", "b"], ["ab"], false],
    [["a", "b"], ["a,b"], false],
    [["a", "b"], ["a\0b"], false],
    [["a", "b"], ["a", "c"], false],
    [["ab", "c"], ["a", "bc"], false],
  ]
) {
  Deno.test(`queueKey() is ${same ? "one" : "two"} for ${JSON.stringify([one, other])}`, () => {
    assertEquals(queueKey(one as string[]) === queueKey(other as string[]), same);
  });
}

Deno.test("queueKey() leaves its keys in their order", () => {
  const keys = ["b", "a"];
  queueKey(keys);
  assertEquals(keys, ["b", "a"]);
});

// Turns

Deno.test("LocalQueues let the first in at once, and others only once nobody is there", () => {
  const { localQueues } = new Bench();
  const [first, second] = [{}, {}];
  assertEquals(localQueues.enter("a", first), true);
  assertEquals([localQueues.enter("a", second), localQueues.enter("a", first)], [false, false]);
  localQueues.leave("a", first);
  assertEquals(localQueues.enter("a", second), true);
});

Deno.test("LocalQueues of different names are independent", () => {
  const { localQueues } = new Bench();
  const [first, second] = [{}, {}];
  assertEquals([localQueues.enter("a", first), localQueues.enter("b", second)], [true, true]);
  localQueues.leave("a", first);
  assertEquals([localQueues.enter("a", {}), localQueues.enter("b", {})], [true, false]);
});

Deno.test("LocalQueues are first in, first out, through attempts and holds", async () => {
  const bench = new Bench();
  const { localQueues, told } = bench;
  const first = {};
  localQueues.enter("a", first);
  const second = bench.caller("second");
  const third = bench.caller("third");
  bench.caller("fourth");
  await runMicrotasks();
  assertEquals(told, []);
  localQueues.leave("a", first);
  await runMicrotasks();
  assertEquals(told, ["second is first"]);
  const held = {};
  localQueues.promote("a", second, held);
  localQueues.leave("a", second); // whose hold it is now
  await runMicrotasks();
  assertEquals(told, ["second is first"]);
  localQueues.leave("a", held);
  await runMicrotasks();
  localQueues.leave("a", third);
  await runMicrotasks();
  assertEquals(told, ["second is first", "third is first", "fourth is first"]);
});

Deno.test("LocalQueues take no notice of anybody who leaves without having come", async () => {
  const bench = new Bench();
  const { localQueues } = bench;
  const first = {};
  localQueues.enter("a", first);
  localQueues.leave("a", {});
  assertEquals(localQueues.enter("a", {}), false);
  const second = bench.caller("second");
  localQueues.leave("a", {});
  localQueues.leave("b", first);
  await runMicrotasks();
  assertEquals(bench.told, []);
  localQueues.leave("a", first);
  await runMicrotasks();
  localQueues.leave("a", first); // was first before
  localQueues.leave("a", second);
  assertEquals([bench.told, localQueues.enter("a", {})], [["second is first"], true]);
});

Deno.test("LocalQueues take no notice of a second vacating by the same hold", async () => {
  const bench = new Bench();
  const { localQueues } = bench;
  const held = {};
  localQueues.enter("a", held);
  bench.caller("second");
  bench.caller("third");
  localQueues.leave("a", held);
  localQueues.leave("a", held);
  await runMicrotasks();
  assertEquals(bench.told, ["second is first"]);
});

Deno.test("LocalQueues let a caller go whose time is over, and the others keep their places", async () => {
  const bench = new Bench();
  const first = {};
  bench.localQueues.enter("a", first);
  bench.caller("second", 100);
  bench.caller("third");
  bench.caller("fourth", 200);
  await bench.cluster.clock.advance(99);
  assertEquals(bench.told, []);
  await bench.cluster.clock.advance(1);
  assertEquals(bench.told, ["second left"]);
  await bench.cluster.clock.advance(100);
  bench.localQueues.leave("a", first);
  await runMicrotasks();
  assertEquals(bench.told, ["second left", "fourth left", "third is first"]);
  assertEquals([bench.cluster.clock.timersAlive, bench.cluster.wheel.size], [0, 0]);
});

Deno.test("LocalQueues let a caller go whose signal aborts, or did before", async () => {
  const bench = new Bench();
  bench.localQueues.enter("a", {});
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  bench.caller("second", Infinity, AbortSignal.abort());
  bench.caller("third", Infinity, controller.signal);
  await runMicrotasks();
  assertEquals([bench.told, listeners()], [["second left"], 1]);
  controller.abort();
  await runMicrotasks();
  assertEquals([bench.told, listeners()], [["second left", "third left"], 0]);
  assertEquals(bench.cluster.wheel.size, 0);
});

Deno.test("LocalQueues let whoever is first be so, though its signal aborts in the same moment", async () => {
  for (const order of ["abort first", "vacate first"]) {
    const bench = new Bench();
    const first = {};
    bench.localQueues.enter("a", first);
    const controller = new AbortController();
    const second = bench.caller("second", Infinity, controller.signal);
    bench.caller("third");
    const acts = [() => controller.abort(), () => bench.localQueues.leave("a", first)];
    if (order === "vacate first") acts.reverse();
    for (const act of acts) act();
    await runMicrotasks();
    assertEquals(bench.told, ["second is first"], order);
    bench.localQueues.leave("a", second);
    await runMicrotasks();
    assertEquals(bench.told, ["second is first", "third is first"], order);
  }
});

Deno.test("LocalQueues let all callers go when the client closes", async () => {
  const bench = new Bench();
  bench.localQueues.enter("a", {});
  bench.caller("second");
  bench.caller("third", 1_000);
  bench.contention.close();
  assertEquals(bench.cluster.wheel.announceClose(), true);
  await runMicrotasks();
  assertEquals(bench.told.toSorted(), ["second left", "third left"]);
  assertEquals([bench.cluster.clock.timersAlive, bench.cluster.wheel.size], [0, 0]);
});

Deno.test("LocalQueues keep the process alive while a caller waits", async () => {
  const bench = new Bench();
  const first = {};
  bench.localQueues.enter("a", first);
  assertEquals(bench.cluster.clock.timers, 0);
  bench.caller("second");
  assertEquals(bench.cluster.clock.timersAlive, 1);
  bench.localQueues.leave("a", first);
  await runMicrotasks();
  assertEquals(bench.cluster.clock.timersAlive, 0);
});

// Those who never ask

Deno.test("LocalQueues remember the last attempt for those who wait behind, until somebody has the lock", () => {
  const bench = new Bench();
  const { contention, localQueues } = bench;
  const first = {};
  localQueues.enter("a", first);
  assertEquals(localQueues.get("a")?.latest, undefined);
  bench.caller("second");
  const rounds = [bench.round(), bench.round()];
  for (const round of rounds) contention.recordDenial("a", round);
  assertStrictEquals(localQueues.get("a")?.latest, rounds[1]);
  assertEquals([localQueues.get("b")?.latest, localQueues.get("a")?.waiter?.queueLength], [
    undefined,
    undefined,
  ]);
  localQueues.promote("a", first, {});
  assertEquals(localQueues.get("a")?.latest, undefined);
});

Deno.test("LocalQueues remember no attempt where nobody stands in line", () => {
  const bench = new Bench();
  bench.contention.recordDenial("a", bench.round());
  assertEquals(bench.localQueues.get("a")?.latest, undefined);
});

// How the first waits

Deno.test("LocalQueues have the first wait to be woken, or poll where it wants to or must", () => {
  const bench = new Bench();
  bench.localQueues.enter("a", {});
  assertInstanceOf(
    bench.contention.waiter("a", ["a"], bench.settings({ notify: false })),
    PollingWaiter,
  );
  assertEquals(bench.cluster.nodes.map(({ subscribes }) => subscribes), [0, 0, 0]);
  assertInstanceOf(bench.contention.waiter("a", ["a"], bench.settings()), QueuedWaiter);
  assertEquals(bench.cluster.nodes.map(({ subscribes }) => subscribes), [1, 1, 1]);
  const deaf = new Bench(({ nodes }) => {
    for (const node of nodes) Object.assign(node, { subscribe: undefined });
  });
  deaf.localQueues.enter("a", {});
  assertInstanceOf(deaf.contention.waiter("a", ["a"], deaf.settings()), PollingWaiter);
});

Deno.test("LocalQueues have one waiter among all clients for one caller after another", async () => {
  const bench = new Bench();
  const { contention, localQueues } = bench;
  const [first, held] = [{}, {}];
  localQueues.enter("a", first);
  const waiter = contention.waiter("a", ["a"], bench.settings());
  assertInstanceOf(waiter, QueuedWaiter);
  bench.caller("second");
  const { ticketId } = waiter;
  localQueues.leave("a", first);
  await runMicrotasks();
  const settings = bench.settings({ ttlMs: 123 });
  assertStrictEquals(contention.waiter("a", ["a"], settings), waiter);
  assertEquals([waiter.ticketId, waiter.settings], [ticketId, settings]);
  localQueues.enter("b", held);
  assert(contention.waiter("b", ["b"], settings) !== waiter);
});

Deno.test("LocalQueues that are empty leave those on the nodes", async () => {
  const bench = new Bench();
  const { contention, localQueues, cluster: { nodes } } = bench;
  const first = {};
  localQueues.enter("a", first);
  const waiter = contention.waiter("a", ["a"], bench.settings()) as QueuedWaiter;
  await bench.cluster.clock.advance(100);
  waiter.nextTicket();
  waiter.onEnqueued(1, { remainingMs: 100, ahead: 0, length: 7 }, 0, 0);
  assertEquals(localQueues.get("a")?.waiter?.queueLength, 7);
  localQueues.leave("a", first);
  assertEquals(nodes.map(({ leaves }) => leaves), Array(3).fill([waiter.ticketId]));
  assertEquals(localQueues.get("a")?.waiter?.queueLength, undefined);
  await bench.cluster.clock.advance(30_000);
  assertEquals(nodes.map(({ unsubscribes }) => unsubscribes), [1, 1, 1]);
});

Deno.test("LocalQueues expect others only where they were seen to want the same, and enough nodes tell", async () => {
  const bench = new Bench(({ nodes }) => nodes.forEach((node) => node.subscribeMs = 10));
  const { contention, localQueues } = bench;
  const expects = (name: string, options?: RedlockOptions) => {
    const caller = {};
    localQueues.enter(name, caller);
    const waiter = contention.waiterIfContended(name, [name], bench.settings(options));
    localQueues.leave(name, caller);
    return waiter !== undefined;
  };
  assertEquals(expects("a"), false);
  const first = {};
  localQueues.enter("a", first);
  contention.waiter("a", ["a"], bench.settings());
  localQueues.leave("a", first);
  assertEquals(expects("a"), false); // nothing would be heard by now
  await bench.cluster.clock.advance(10);
  assertEquals([expects("a"), expects("b")], [true, false]);
  assertEquals(expects("a", { notify: false }), false);
  await bench.cluster.clock.advance(30_000);
  assertEquals(expects("a"), false);
});

Deno.test("LocalQueues expect others where these wait at the release, for the next alone", async () => {
  const bench = new Bench();
  const { contention, localQueues } = bench;
  const held = {};
  localQueues.enter("a", held);
  const second = bench.caller("second");
  bench.caller("third");
  localQueues.leave("a", held, true);
  await runMicrotasks();
  assertEquals(
    contention.waiterIfContended("a", ["a"], bench.settings({ notify: false })),
    undefined,
  );
  const [node] = bench.cluster.nodes;
  assertEquals(node.subscribes, 0);
  localQueues.leave("a", second);
  await runMicrotasks();
  assertEquals([bench.told.at(-1), node.subscribes], ["third is first", 0]);
  assertEquals(contention.waiterIfContended("a", ["a"], bench.settings()), undefined);
});

Deno.test("LocalQueues have the next line up where others wait at the release, though nobody listens yet", async () => {
  const bench = new Bench();
  const held = {};
  bench.localQueues.enter("a", held);
  bench.caller("second");
  bench.localQueues.leave("a", held, true);
  await runMicrotasks();
  assertInstanceOf(bench.contention.waiterIfContended("a", ["a"], bench.settings()), QueuedWaiter);
  assertEquals(bench.cluster.nodes[0].subscribes, 1);
});

Deno.test("LocalQueues that nobody waits in forget that others waited at the release", () => {
  const bench = new Bench();
  const { contention, localQueues } = bench;
  const [held, next] = [{}, {}];
  localQueues.enter("a", held);
  localQueues.leave("a", held, true);
  localQueues.enter("a", next);
  assertEquals(contention.waiterIfContended("a", ["a"], bench.settings()), undefined);
  assertEquals(bench.cluster.nodes[0].subscribes, 0);
});
