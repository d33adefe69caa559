import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { Contender } from "../../../src/waiting/queued_waiter.ts";
import { lineName, type Lines } from "../../../src/waiting/local_queues.ts";
import { type RedlockOptions, resolveOptions, type Settings } from "../../../src/options.ts";
import { type Electorate, electorateOf, Round } from "../../../src/quorum/round.ts";
import { PollingWaiter } from "../../../src/waiting/waiter.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";
import { WaitingCluster } from "../../support/waiting_nodes.ts";

/** The lines of a client, and callers who write down how their wait ended. */
class Bench {
  readonly cluster: WaitingCluster;
  readonly electorate: Electorate;
  readonly lines: Lines;
  /** Who came first, and who left, in order. */
  readonly told: string[] = [];

  constructor(prepare: (cluster: WaitingCluster) => void = () => {}) {
    this.cluster = new WaitingCluster();
    prepare(this.cluster);
    this.electorate = electorateOf(this.cluster.wheel, this.cluster.nodes);
    this.lines = this.electorate.lines;
  }

  /** A caller that waits in the line of that name. */
  caller(who: string, limitMs = Infinity, signal?: AbortSignal, name = "a"): object {
    const caller = { who };
    this.lines.wait(name, caller, limitMs, signal).then((first) => {
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
  Deno.test(`lineName() is ${same ? "one" : "two"} for ${JSON.stringify([one, other])}`, () => {
    assertEquals(lineName(one as string[]) === lineName(other as string[]), same);
  });
}

Deno.test("lineName() leaves its keys in their order", () => {
  const keys = ["b", "a"];
  lineName(keys);
  assertEquals(keys, ["b", "a"]);
});

// Turns

Deno.test("Lines let the first in at once, and others only once nobody is there", () => {
  const { lines } = new Bench();
  const [first, second] = [{}, {}];
  assertEquals(lines.enter("a", first), true);
  assertEquals([lines.enter("a", second), lines.enter("a", first)], [false, false]);
  lines.vacate("a", first);
  assertEquals(lines.enter("a", second), true);
});

Deno.test("Lines of different names are independent", () => {
  const { lines } = new Bench();
  const [first, second] = [{}, {}];
  assertEquals([lines.enter("a", first), lines.enter("b", second)], [true, true]);
  lines.vacate("a", first);
  assertEquals([lines.enter("a", {}), lines.enter("b", {})], [true, false]);
});

Deno.test("Lines are first in, first out, through attempts and holds", async () => {
  const bench = new Bench();
  const { lines, told } = bench;
  const first = {};
  lines.enter("a", first);
  const second = bench.caller("second");
  const third = bench.caller("third");
  bench.caller("fourth");
  await runMicrotasks();
  assertEquals(told, []);
  lines.vacate("a", first);
  await runMicrotasks();
  assertEquals(told, ["second is first"]);
  const hold = {};
  lines.succeed("a", second, hold);
  lines.vacate("a", second); // whose hold it is now
  await runMicrotasks();
  assertEquals(told, ["second is first"]);
  lines.vacate("a", hold);
  await runMicrotasks();
  lines.vacate("a", third);
  await runMicrotasks();
  assertEquals(told, ["second is first", "third is first", "fourth is first"]);
});

Deno.test("Lines take no notice of anybody who leaves without being first", async () => {
  const bench = new Bench();
  const { lines } = bench;
  const first = {};
  lines.enter("a", first);
  lines.vacate("a", {});
  assertEquals(lines.enter("a", {}), false);
  const second = bench.caller("second");
  lines.vacate("a", {});
  lines.vacate("a", second);
  lines.vacate("b", first);
  await runMicrotasks();
  assertEquals(bench.told, []);
  lines.vacate("a", first);
  await runMicrotasks();
  lines.vacate("a", first); // was first before
  lines.vacate("a", second);
  assertEquals([bench.told, lines.enter("a", {})], [["second is first"], true]);
});

Deno.test("Lines take no notice of a second vacating by the same hold", async () => {
  const bench = new Bench();
  const { lines } = bench;
  const hold = {};
  lines.enter("a", hold);
  bench.caller("second");
  bench.caller("third");
  lines.vacate("a", hold);
  lines.vacate("a", hold);
  await runMicrotasks();
  assertEquals(bench.told, ["second is first"]);
});

Deno.test("Lines let a caller go whose time is over, and the others keep their places", async () => {
  const bench = new Bench();
  const first = {};
  bench.lines.enter("a", first);
  bench.caller("second", 100);
  bench.caller("third");
  bench.caller("fourth", 200);
  await bench.cluster.clock.advance(99);
  assertEquals(bench.told, []);
  await bench.cluster.clock.advance(1);
  assertEquals(bench.told, ["second left"]);
  await bench.cluster.clock.advance(100);
  bench.lines.vacate("a", first);
  await runMicrotasks();
  assertEquals(bench.told, ["second left", "fourth left", "third is first"]);
  assertEquals([bench.cluster.clock.timersAlive, bench.cluster.wheel.size], [0, 0]);
});

Deno.test("Lines let a caller go whose signal aborts, or did before", async () => {
  const bench = new Bench();
  bench.lines.enter("a", {});
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

Deno.test("Lines let whoever is first be so, though its signal aborts in the same moment", async () => {
  for (const order of ["abort first", "vacate first"]) {
    const bench = new Bench();
    const first = {};
    bench.lines.enter("a", first);
    const controller = new AbortController();
    const second = bench.caller("second", Infinity, controller.signal);
    bench.caller("third");
    const acts = [() => controller.abort(), () => bench.lines.vacate("a", first)];
    if (order === "vacate first") acts.reverse();
    for (const act of acts) act();
    await runMicrotasks();
    assertEquals(bench.told, ["second is first"], order);
    bench.lines.vacate("a", second);
    await runMicrotasks();
    assertEquals(bench.told, ["second is first", "third is first"], order);
  }
});

Deno.test("Lines let all callers go when the client closes", async () => {
  const bench = new Bench();
  bench.lines.enter("a", {});
  bench.caller("second");
  bench.caller("third", 1_000);
  bench.lines.close();
  assertEquals(bench.cluster.wheel.announceClose(), true);
  await runMicrotasks();
  assertEquals(bench.told.toSorted(), ["second left", "third left"]);
  assertEquals([bench.cluster.clock.timersAlive, bench.cluster.wheel.size], [0, 0]);
});

Deno.test("Lines keep the process alive while a caller waits", async () => {
  const bench = new Bench();
  const first = {};
  bench.lines.enter("a", first);
  assertEquals(bench.cluster.clock.timers, 0);
  bench.caller("second");
  assertEquals(bench.cluster.clock.timersAlive, 1);
  bench.lines.vacate("a", first);
  await runMicrotasks();
  assertEquals(bench.cluster.clock.timersAlive, 0);
});

// Those who never ask

Deno.test("Lines remember the last attempt for those who wait behind, until somebody has the lock", () => {
  const bench = new Bench();
  const { lines } = bench;
  const first = {};
  lines.enter("a", first);
  assertEquals(lines.latest("a"), undefined);
  bench.caller("second");
  const rounds = [bench.round(), bench.round()];
  for (const round of rounds) lines.note("a", round);
  assertStrictEquals(lines.latest("a"), rounds[1]);
  assertEquals([lines.latest("b"), lines.length("a")], [undefined, undefined]);
  lines.succeed("a", first, {});
  assertEquals(lines.latest("a"), undefined);
});

Deno.test("Lines remember no attempt where nobody stands in line", () => {
  const bench = new Bench();
  bench.lines.note("a", bench.round());
  assertEquals(bench.lines.latest("a"), undefined);
});

// How the first waits

Deno.test("Lines have the first wait to be woken, or poll where it wants to or must", () => {
  const bench = new Bench();
  bench.lines.enter("a", {});
  assertInstanceOf(
    bench.lines.waiter("a", ["a"], bench.settings({ notify: false })),
    PollingWaiter,
  );
  assertEquals(bench.cluster.nodes.map(({ listened }) => listened), [0, 0, 0]);
  assertInstanceOf(bench.lines.waiter("a", ["a"], bench.settings()), Contender);
  assertEquals(bench.cluster.nodes.map(({ listened }) => listened), [1, 1, 1]);
  const deaf = new Bench(({ nodes }) => {
    for (const node of nodes) Object.assign(node, { listen: undefined });
  });
  deaf.lines.enter("a", {});
  assertInstanceOf(deaf.lines.waiter("a", ["a"], deaf.settings()), PollingWaiter);
});

Deno.test("Lines have one stand among all clients for one caller after another", async () => {
  const bench = new Bench();
  const { lines } = bench;
  const [first, hold] = [{}, {}];
  lines.enter("a", first);
  const waiter = lines.waiter("a", ["a"], bench.settings());
  assertInstanceOf(waiter, Contender);
  bench.caller("second");
  const { entry } = waiter;
  lines.vacate("a", first);
  await runMicrotasks();
  const settings = bench.settings({ ttlMs: 123 });
  assertStrictEquals(lines.waiter("a", ["a"], settings), waiter);
  assertEquals([waiter.entry, waiter.settings], [entry, settings]);
  lines.enter("b", hold);
  assert(lines.waiter("b", ["b"], settings) !== waiter);
});

Deno.test("Lines that are empty leave those on the nodes", async () => {
  const bench = new Bench();
  const { lines, cluster: { nodes } } = bench;
  const first = {};
  lines.enter("a", first);
  const waiter = lines.waiter("a", ["a"], bench.settings()) as Contender;
  await bench.cluster.clock.advance(100);
  waiter.next();
  waiter.onQueued(1, { remainingMs: 100, ahead: 0, length: 7 });
  assertEquals(lines.length("a"), 7);
  lines.vacate("a", first);
  assertEquals(nodes.map(({ leaves }) => leaves), Array(3).fill([waiter.entry]));
  assertEquals(lines.length("a"), undefined);
  await bench.cluster.clock.advance(30_000);
  assertEquals(nodes.map(({ unlistened }) => unlistened), [1, 1, 1]);
});

Deno.test("Lines expect others only where they were seen to want the same, and enough nodes tell", async () => {
  const bench = new Bench(({ nodes }) => nodes.forEach((node) => node.listenMs = 10));
  const { lines } = bench;
  const expects = (name: string, options?: RedlockOptions) => {
    const caller = {};
    lines.enter(name, caller);
    const waiter = lines.expected(name, [name], bench.settings(options));
    lines.vacate(name, caller);
    return waiter !== undefined;
  };
  assertEquals(expects("a"), false);
  const first = {};
  lines.enter("a", first);
  lines.waiter("a", ["a"], bench.settings());
  lines.vacate("a", first);
  assertEquals(expects("a"), false); // nothing would be heard by now
  await bench.cluster.clock.advance(10);
  assertEquals([expects("a"), expects("b")], [true, false]);
  assertEquals(expects("a", { notify: false }), false);
  await bench.cluster.clock.advance(30_000);
  assertEquals(expects("a"), false);
});

Deno.test("Lines expect others where these wait at the release, for the next alone", async () => {
  const bench = new Bench();
  const { lines } = bench;
  const hold = {};
  lines.enter("a", hold);
  const second = bench.caller("second");
  bench.caller("third");
  lines.vacate("a", hold, true);
  await runMicrotasks();
  assertEquals(lines.expected("a", ["a"], bench.settings({ notify: false })), undefined);
  const [node] = bench.cluster.nodes;
  assertEquals(node.listened, 0);
  lines.vacate("a", second);
  await runMicrotasks();
  assertEquals([bench.told.at(-1), node.listened], ["third is first", 0]);
  assertEquals(lines.expected("a", ["a"], bench.settings()), undefined);
});

Deno.test("Lines have the next line up where others wait at the release, though nobody listens yet", async () => {
  const bench = new Bench();
  const hold = {};
  bench.lines.enter("a", hold);
  bench.caller("second");
  bench.lines.vacate("a", hold, true);
  await runMicrotasks();
  assertInstanceOf(bench.lines.expected("a", ["a"], bench.settings()), Contender);
  assertEquals(bench.cluster.nodes[0].listened, 1);
});

Deno.test("Lines that nobody waits in forget that others waited at the release", () => {
  const bench = new Bench();
  const { lines } = bench;
  const [hold, next] = [{}, {}];
  lines.enter("a", hold);
  lines.vacate("a", hold, true);
  lines.enter("a", next);
  assertEquals(lines.expected("a", ["a"], bench.settings()), undefined);
  assertEquals(bench.cluster.nodes[0].listened, 0);
});
