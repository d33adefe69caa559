import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { QuorumError } from "../../../src/errors.ts";
import { inspect, type Inspection } from "../../../src/lock/inspection.ts";
import type { KeyState } from "../../../src/quorum/lock_node.ts";
import { quorumSize } from "../../../src/quorum/quorum.ts";
import { type ClientState, createClientState } from "../../../src/client_state.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeNode, type Mode } from "../../support/fake_nodes.ts";

const TIMEOUT_MS = 50;

/** What a node says of the key: nothing is there, somebody's value is, or it cannot tell. */
type Saying = "free" | "alice" | "bob" | Exclude<Mode, "answer">;

/** Nodes on faked time, each of which says what it is to. */
class Bench {
  readonly clock = new FakeClock();
  readonly wheel = new TimerWheel(this.clock);
  readonly nodes: FakeNode[];
  readonly electorate: ClientState;

  constructor(sayings: readonly Saying[]) {
    this.nodes = sayings.map((saying, index) => {
      const node = new FakeNode(`node${index}`, this.clock);
      if (saying === "alice" || saying === "bob") node.set("key", saying, 1_000 + index);
      else if (saying !== "free") node.mode = saying;
      return node;
    });
    this.electorate = createClientState(this.wheel, this.nodes);
  }

  start(): Promise<Inspection> {
    return inspect(this.electorate, "resource", "key", TIMEOUT_MS);
  }

  /** What comes of inspecting; an error is returned. */
  async outcome(inspecting = this.start()): Promise<Inspection | QuorumError> {
    const settled = inspecting.catch((error) => error);
    const outcome = await advanceUntil(this.clock, settled, 10_000, 1);
    assertEquals([this.wheel.size, this.clock.timersAlive], [0, 0]);
    return outcome;
  }
}

/** Inspects nodes that say this; it must come to a result. */
async function inspected(...sayings: Saying[]): Promise<Inspection> {
  const outcome = await new Bench(sayings).outcome();
  assert(!(outcome instanceof Error), `${outcome}`);
  return outcome;
}

/** Inspects nodes that say this; it must be impossible to tell. */
async function failure(...sayings: Saying[]): Promise<QuorumError> {
  const outcome = await new Bench(sayings).outcome();
  assertInstanceOf(outcome, QuorumError);
  return outcome;
}

/** Every way for `count` nodes to say one of `sayings` each. */
function combinations<T>(sayings: readonly T[], count: number): T[][] {
  if (count === 0) return [[]];
  return combinations(sayings, count - 1).flatMap((rest) =>
    sayings.map((saying) => [...rest, saying])
  );
}

/** What may be said of keys, when a node that cannot tell may have any of them. */
function possible(sayings: readonly Saying[], quorum: number): Set<"held" | "free"> {
  const worlds = sayings.reduce<Saying[][]>((worlds, saying) => {
    const known = saying === "free" || saying === "alice" || saying === "bob";
    const states: Saying[] = known ? [saying] : ["free", "alice", "bob"];
    return worlds.flatMap((world) => states.map((state) => [...world, state]));
  }, [[]]);
  return new Set(worlds.map((world) => {
    const held = ["alice", "bob"].some((value) => {
      return world.filter((state) => state === value).length >= quorum;
    });
    return held ? "held" : "free";
  }));
}

for (const nodeCount of [1, 2, 3]) {
  Deno.test(`inspect() of ${nodeCount} tells held from free exactly where the answers leave no doubt, for every combination`, async () => {
    const sayings = ["free", "alice", "bob", "fail", "hang", "throw"] as const;
    for (const said of combinations<Saying>(sayings, nodeCount)) {
      const outcome = await new Bench(said).outcome();
      const told = outcome instanceof QuorumError ? "unknown" : outcome.held ? "held" : "free";
      const [first, ...others] = possible(said, quorumSize(nodeCount));
      assertEquals(told, others.length > 0 ? "unknown" : first, said.join(", "));
    }
  });
}

for (
  const [sayings, told] of [
    ["alice alice alice free free", "held"],
    ["alice alice alice hang fail", "held"],
    ["alice bob alice bob alice", "held"],
    ["alice alice free free bob", "free"],
    ["alice bob fail free free", "free"],
    ["free free free hang hang", "free"],
    ["alice free free free hang", "free"],
    ["alice alice bob bob free", "free"],
    ["alice alice free free hang", "unknown"],
    ["alice free free hang fail", "unknown"],
    ["alice alice bob bob throw", "unknown"],
    ["free free hang hang hang", "unknown"],
    ["fail fail fail fail fail", "unknown"],
  ] as const
) {
  Deno.test(`inspect() of five is ${told} where they say ${sayings}`, async () => {
    const outcome = await new Bench(sayings.split(" ") as Saying[]).outcome();
    const actual = outcome instanceof QuorumError ? "unknown" : outcome.held ? "held" : "free";
    assertEquals(actual, told);
  });
}

// What it says

Deno.test("inspect() votes held if the key is there, free if it is missing, and says why if a node fails", async () => {
  const { votes } = await inspected("alice", "alice", "free", "alice", "fail");
  assertEquals(votes.map(({ node, outcome }) => [node, outcome]), [
    ["node0", "held"],
    ["node1", "held"],
    ["node2", "free"],
    ["node3", "held"],
    ["node4", "failed"],
  ]);
  assertEquals(votes.map(({ error }) => error?.message), [
    ...Array(4).fill(undefined),
    "node4 is down",
  ]);
});

Deno.test("inspect() votes tell how long each answer took", async () => {
  const bench = new Bench(["free", "free", "free", "hang", "fail"]);
  bench.nodes[1].replyMs = 20;
  const outcome = await bench.outcome();
  assert(!(outcome instanceof Error));
  assertEquals(outcome.votes.map(({ elapsedMs }) => elapsedMs), [0, 20, 0, TIMEOUT_MS, 0]);
});

Deno.test("inspect() shows no value of a lock", async () => {
  const shown = Deno.inspect(await inspected("alice", "alice", "bob"), { depth: 5 });
  assertEquals(/alice|bob/u.test(shown), false);
});

Deno.test("inspect() asks each node once, for the key", async () => {
  const bench = new Bench(["free", "alice", "fail"]);
  await bench.outcome();
  for (const { calls } of bench.nodes) {
    assertEquals(calls.map(({ operation, keys }) => [operation, keys]), [["inspect", ["key"]]]);
  }
});

Deno.test("inspect() that can't tell names the resource, counts the votes and gives the causes", async () => {
  const error = await failure("alice", "fail", "hang", "free", "throw");
  assertEquals(
    error.message,
    'Cannot inspect lock "resource": 2 of 5 nodes answered, 1 held, 1 free, 2 failed, 1 timed out, 3 are needed; first error: node1 is down',
  );
  assertEquals([error.code, error.resources], ["NO_QUORUM", ["resource"]]);
  assertEquals(error.votes.map(({ outcome }) => outcome), [
    "held",
    "failed",
    "timed-out",
    "free",
    "failed",
  ]);
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node1: node1 is down; node4: node4 threw");
});

Deno.test("inspect() that can't tell for time-outs alone has no cause", async () => {
  assertEquals((await failure("hang", "hang", "free")).cause, undefined);
});

for (
  const [thrown, message] of [["a text", "a text"], [undefined, "undefined"], [
    null,
    "null",
  ]] as const
) {
  Deno.test(`inspect() makes an error of ${Deno.inspect(thrown)} that a node rejects with`, async () => {
    const bench = new Bench(["fail"]);
    bench.nodes[0].inspect = () => Promise.reject(thrown);
    const error = await bench.outcome();
    assertInstanceOf(error, QuorumError);
    assertInstanceOf(error.votes[0].error, Error);
    assertEquals(error.votes[0].error.message, message);
  });
}

// For how long

for (
  const [remainders, remainingMs] of [
    [[100], 100],
    [[100, 200], 100],
    [[100, 200, 300], 200],
    [[300, 100, 200], 200],
    [[200, 300, undefined], 200],
    [[100, 700, 300, 900, 500], 500],
    [[100, 700, 300, undefined, undefined], 100],
    [[100, 700, 300, 900, undefined], 300],
    [[Infinity, 50, Infinity], Infinity],
    [[Infinity, 50, 80], 80],
    [[Infinity, 50, undefined], 50],
    [[0.25, 0.5, undefined], 0.25],
  ] as const
) {
  const shown = remainders.map((ttlMs) => ttlMs ?? "no").join(", ");
  Deno.test(`inspect() of keys that live for ${shown} ms says ${remainingMs}, the quorum-th longest`, async () => {
    const bench = new Bench(remainders.map(() => "free"));
    remainders.forEach((ttlMs, index) => {
      if (ttlMs !== undefined) bench.nodes[index].set("key", "alice", ttlMs);
    });
    const outcome = await bench.outcome();
    assert(!(outcome instanceof Error));
    assertEquals([outcome.held, outcome.remainingMs], [true, remainingMs]);
  });
}

Deno.test("inspect() takes a node that fails to hold the key for as long as any other", async () => {
  const bench = new Bench(["free", "free", "fail"]);
  [100, 200].forEach((ttlMs, index) => bench.nodes[index].set("key", "alice", ttlMs));
  const outcome = await bench.outcome();
  assert(!(outcome instanceof Error));
  assertEquals([outcome.held, outcome.remainingMs], [true, 200]);
});

Deno.test("inspect() counts only the keys of the value that holds it", async () => {
  const bench = new Bench(["alice", "bob", "alice", "bob", "alice"]);
  for (const number of [1, 3]) bench.nodes[number].set("key", "bob", 9_000);
  [0, 2, 4].forEach((number, index) => bench.nodes[number].set("key", "alice", 100 + index));
  const outcome = await bench.outcome();
  assert(!(outcome instanceof Error));
  assertEquals([outcome.held, outcome.remainingMs], [true, 100]);
});

Deno.test("inspect() says 0 ms where nobody holds it, whatever stands on a minority", async () => {
  assertEquals((await inspected("alice", "free", "free")).remainingMs, 0);
});

// What no lock library set

for (
  const [ttlMs, type, foreign] of [
    [500, undefined, undefined],
    [Infinity, undefined, "has no TTL, so no lock library set it"],
    [500, "list", "holds a list, so no lock library set it"],
    [Infinity, "hash", "holds a hash and has no TTL, so no lock library set it"],
  ] as const
) {
  Deno.test(`inspect() of a key with a TTL of ${ttlMs} ms and a ${type ?? "string"} in it: ${foreign}`, async () => {
    const bench = new Bench(["free", "free", "free"]);
    for (const node of bench.nodes.slice(1)) node.set("key", "", ttlMs, type);
    const outcome = await bench.outcome();
    assert(!(outcome instanceof Error));
    assertEquals([outcome.held, outcome.remainingMs, outcome.foreign], [true, ttlMs, foreign]);
  });
}

Deno.test("inspect() says nothing of a key of another type on a minority of nodes", async () => {
  const bench = new Bench(["free", "free", "free"]);
  bench.nodes[0].set("key", "", Infinity, "list");
  const outcome = await bench.outcome();
  assert(!(outcome instanceof Error));
  assertEquals([outcome.held, outcome.foreign], [false, undefined]);
});

// Waiting

Deno.test("inspect() waits for a node no longer than the time-out", async () => {
  const bench = new Bench(["alice", "alice", "hang"]);
  const startMs = bench.clock.monotonicMs();
  await bench.outcome();
  assertEquals(bench.clock.monotonicMs() - startMs, TIMEOUT_MS);
});

Deno.test("inspect() counts a node's time from when it could first be asked", async () => {
  const bench = new Bench(["alice", "alice", "hang"]);
  bench.nodes[2].readyAtMs = Infinity;
  const startMs = bench.clock.monotonicMs();
  const inspecting = bench.start();
  await bench.clock.advance(70);
  bench.nodes[2].readyAtMs = startMs + 70;
  await bench.outcome(inspecting);
  assertEquals(bench.clock.monotonicMs() - startMs, 70 + TIMEOUT_MS);
});

Deno.test("inspect() takes the answer of a node whose first connecting took longer than the time-out", async () => {
  const bench = new Bench(["hang"]);
  bench.nodes[0].readyAtMs = Infinity;
  bench.nodes[0].set("key", "alice");
  const inspecting = bench.start();
  await bench.clock.advance(4 * TIMEOUT_MS);
  bench.nodes[0].resume();
  const outcome = await bench.outcome(inspecting);
  assert(!(outcome instanceof Error));
  assertEquals(outcome.held, true);
});

Deno.test("inspect() does not listen to what comes after the time-out", async () => {
  const bench = new Bench(["hang", "free", "free"]);
  const outcome = await bench.outcome();
  assert(!(outcome instanceof Error));
  bench.nodes[0].resume();
  await runMicrotasks();
  assertEquals(outcome.votes[0].outcome, "timed-out");
});

Deno.test("inspect() keeps the process alive while it waits", async () => {
  const bench = new Bench(["hang"]);
  const inspecting = bench.start();
  await runMicrotasks();
  assertEquals(bench.clock.timersAlive, 1);
  await bench.outcome(inspecting);
});

// Closing

for (
  const [sayings, told] of [
    [["hang", "hang", "hang"], "unknown"],
    [["alice", "hang", "free"], "unknown"],
    [["alice", "alice", "hang"], "held"],
    [["free", "free", "hang"], "free"],
  ] as const
) {
  Deno.test(`inspect() cut short by a close is ${told} where nodes said ${sayings.join(", ")}`, async () => {
    const bench = new Bench(sayings);
    const inspecting = bench.start().catch((error) => error);
    await runMicrotasks();
    bench.wheel.announceClose();
    const outcome = await inspecting; // without any time passing
    bench.wheel.close();
    assertEquals(bench.clock.timers, 0);
    if (told !== "unknown") return assertEquals(outcome.held, told === "held");
    assertInstanceOf(outcome, QuorumError);
    const last = outcome.votes.findLast(({ outcome }) => outcome === "failed");
    assertEquals(last?.error?.message, "the lock client was closed");
  });
}

Deno.test("inspect() after which the client closes leaves a pending node's late failure unheard", async () => {
  const bench = new Bench(["free"]);
  const answer = Promise.withResolvers<KeyState | undefined>();
  bench.nodes[0].inspect = () => answer.promise;
  const rejected = assertRejects(() => bench.start(), QuorumError);
  bench.wheel.announceClose();
  const error = await rejected;
  answer.reject(new Error("late"));
  await runMicrotasks();
  assertEquals(error.votes[0].error?.message, "the lock client was closed");
});
