import { assert, assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import { QuorumError, RedlockError } from "../../../src/errors.ts";
import type { Inspection } from "../../../src/lock/inspection.ts";
import { quorumSize } from "../../../src/vote.ts";
import { Cluster, test } from "../../support/cluster.ts";
import { combinations } from "../../support/combinations.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { Mode } from "../../support/keyspace_node.ts";

const TIMEOUT_MS = 50;

/**
 * What a node has under the key, as a word: nothing, a key of Alice's or of Bob's with or without a
 * TTL, the readers Ann or Ben or both, or it does not answer.
 */
type State = string;

const READERS: Readonly<Record<State, readonly string[]>> = {
  ann: ["ann"],
  ben: ["ben"],
  both: ["ann", "ben"],
};

/** A cluster whose nodes have these states, in words. */
function clusterOf(states: State): Cluster {
  const words = states.split(" ");
  const cluster = new Cluster(words.length, { nodeTimeoutMs: TIMEOUT_MS });
  words.forEach((state, index) => {
    const node = cluster.nodes[index];
    const [, name, ttl] = /^(alice|bob)(\d*)$/u.exec(state) ?? [];
    const sharers = READERS[state];
    if (name) node.set("a", name, ttl ? Number(ttl) : Infinity);
    else if (sharers) {
      node.inspect = () => Promise.resolve({ value: "", remainingMs: 500, sharers });
    } else if (state !== "free") node.mode = state as Mode;
  });
  return cluster;
}

/** What comes of inspecting; an error is returned. */
async function outcomeOf(
  cluster: Cluster,
  inspecting: Promise<Inspection> = cluster.redlock.inspect("a"),
): Promise<Inspection | QuorumError> {
  const outcome = await cluster.settle(inspecting.catch((error) => error));
  assertEquals(cluster.timers, [0, 0]);
  return outcome;
}

/** Inspects nodes of these states; it must come to a result. */
async function inspected(states: State): Promise<Inspection> {
  const outcome = await outcomeOf(clusterOf(states));
  assert(!(outcome instanceof Error), `${outcome}`);
  return outcome;
}

function verdict(outcome: Inspection | QuorumError): "held" | "free" | "unknown" {
  return outcome instanceof RedlockError ? "unknown" : outcome.held ? "held" : "free";
}

/** What may be true of keys, if a node that does not answer may have any of them. */
function possible(states: readonly State[], quorum: number): Set<"held" | "free"> {
  const known = ["free", "alice", "bob", ...Object.keys(READERS)];
  const worlds = states.reduce<State[][]>((worlds, state) => {
    const each = known.includes(state) ? [state] : known;
    return worlds.flatMap((world) => each.map((state) => [...world, state]));
  }, [[]]);
  return new Set(worlds.map((world) => {
    const values = world.flatMap((state) => READERS[state] ?? [state]);
    const held = ["alice", "bob", "ann", "ben"].some((name) => {
      return values.filter((value) => value === name).length >= quorum;
    });
    return held ? "held" : "free";
  }));
}

for (const nodeCount of [1, 2, 3, 4]) {
  Deno.test(`inspect() of ${nodeCount} nodes is held or free if and only if the answers leave no doubt, for every combination`, async () => {
    const all = ["free", "alice", "bob", "fail", "hang"];
    for (const states of combinations(all.slice(0, 8 - nodeCount), nodeCount)) {
      const outcome = await outcomeOf(clusterOf(states.join(" ")));
      const [first, ...others] = possible(states, quorumSize(nodeCount));
      assertEquals(verdict(outcome), others.length > 0 ? "unknown" : first, states.join(" "));
      if (!(outcome instanceof Error)) assertEquals(outcome.remainingMs > 0, outcome.held);
    }
  });
}

Deno.test("inspect() of five nodes is held or free if and only if the answers leave no doubt, among readers too", async () => {
  for (const states of combinations(["alice", "ann", "ben", "both", "fail"], 5)) {
    if (states.filter((state) => state === "fail").length > 2) continue; // any lock may be there
    const outcome = await outcomeOf(clusterOf(states.join(" ")));
    const [first, ...others] = possible(states, 3);
    assertEquals(verdict(outcome), others.length > 0 ? "unknown" : first, states.join(" "));
    if (!(outcome instanceof Error)) assertEquals(outcome.remainingMs > 0, outcome.held);
  }
});

for (
  const [states, remainingMs] of [
    ["alice100", 100],
    ["alice100 alice200", 100],
    ["alice300 alice100 alice200", 200],
    ["alice200 alice300 free", 200],
    ["alice100 alice200 fail", 200], // which may have the key for as long as any other
    ["alice100 alice700 alice300 alice900 alice500", 500],
    ["alice100 alice700 alice300 free free", 100],
    ["alice100 bob9000 alice101 bob9000 alice102", 100],
    ["alice alice50 alice", Infinity],
    ["alice alice50 alice80", 80],
    ["alice alice50 free", 50],
  ] as const
) {
  Deno.test(`inspect() of ${states} has ${remainingMs} ms left, the quorum-th longest of its holder's keys`, async () => {
    const outcome = await inspected(states);
    assertEquals([outcome.held, outcome.remainingMs], [true, remainingMs]);
  });
}

// What it reports

Deno.test("inspect() asks each node once for the key, and reports what it answered, in which time, and no value", async () => {
  const cluster = clusterOf("free free free hang fail");
  for (const node of cluster.nodes.slice(0, 2)) node.set("app:a", "alice");
  cluster.nodes[1].replyMs = 20;
  const inspecting = cluster.redlock.inspect("a", { keyPrefix: "app:" });
  const outcome = await cluster.rejection(inspecting) as QuorumError;
  const votes = outcome.votes.map(({ node, outcome, elapsedMs, error }) => {
    return [node, outcome, elapsedMs, error?.message];
  });
  assertEquals(votes, [
    ["node0", "held", 0, undefined],
    ["node1", "held", 20, undefined],
    ["node2", "free", 0, undefined],
    ["node3", "timed-out", TIMEOUT_MS, undefined],
    ["node4", "failed", 0, "node4 is down"],
  ]);
  for (const { calls } of cluster.nodes) {
    assertEquals(calls.map(({ operation, keys }) => [operation, keys]), [["inspect", ["app:a"]]]);
  }
  const shown = Deno.inspect([outcome, await inspected("alice alice bob")], { depth: 5 });
  assertEquals(/alice|bob/u.test(shown), false);
  cluster.resume(); // too late
  await runMicrotasks();
  assertEquals(outcome.votes[3].outcome, "timed-out");
});

Deno.test("inspect() without a result names the resource, counts the votes and has the causes", async () => {
  const error = await outcomeOf(clusterOf("alice fail hang free fail"));
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot inspect lock "a": 2 of 5 nodes answered, 1 held, 1 free, 2 failed, 1 timed out, 3 are needed to agree; first error: node1 is down',
  );
  assertEquals([error.code, error.resources], ["NO_QUORUM", ["a"]]);
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node1 is down; node2: no answer; node4 is down");
  assertEquals((await outcomeOf(clusterOf("hang hang free")) as QuorumError).cause, undefined);
});

Deno.test("inspect() says why a key is no lock library's, if a quorum of nodes has it", async () => {
  for (
    const [remainingMs, type, foreign, sharers] of [
      [500, undefined, undefined],
      [Infinity, undefined, "has no TTL, so no lock library set it"],
      [500, "list", "holds a list, so no lock library set it"],
      [Infinity, "hash", "holds a hash and has no TTL, so no lock library set it"],
      [500, undefined, undefined, []], // its last reader has just gone
      [Infinity, undefined, "has no TTL, so no lock library set it", []],
    ] as const
  ) {
    for (const count of [1, 2]) {
      const cluster = clusterOf("free free free");
      const state = { value: "", remainingMs, ...type && { type }, sharers };
      for (const [index, node] of cluster.nodes.slice(0, count).entries()) {
        node.inspect = () => Promise.resolve({ ...state, ...index === 0 && { waiters: 3 } });
      }
      const outcome = await outcomeOf(cluster) as Inspection;
      const shown = [outcome.held, outcome.remainingMs, outcome.waiters, outcome.foreign];
      const isHeld = count === 2 && sharers === undefined;
      assertEquals(shown, [
        ...isHeld ? [true, remainingMs, 3] : [false, 0, undefined],
        count === 2 ? foreign : undefined,
      ]);
    }
  }
});

Deno.test("inspect() has a short hash by which one holder differs from the next, but not the value", async () => {
  const [alice, again, bob] = await Promise.all(
    ["alice9 alice9 bob9", "alice5 free alice5", "bob9 bob9 free"].map(inspected),
  );
  assertMatch(alice.holders[0].holder, /^[\da-f]{8}$/);
  assertEquals(again.holders, alice.holders);
  assert(bob.holders[0].holder !== alice.holders[0].holder);
  assertEquals((await inspected("alice9 bob9 free")).holders, []);
  assertEquals((await inspected("ann ann ann")).waiters, undefined);
  const cluster = clusterOf("free");
  const list = { value: "", remainingMs: 500, type: "list" };
  cluster.nodes[0].inspect = () => Promise.resolve(list);
  assertEquals((await outcomeOf(cluster) as Inspection).holders, []);
  const wrong = [{ sharers: [null] }, { sharers: "" }, { remainingMs: -1 }, { remainingMs: 5n }];
  for (const part of [...wrong, { value: 1 }]) {
    cluster.nodes[0].inspect = () => Promise.resolve({ ...list, ...part as object });
    assertEquals(verdict(await outcomeOf(cluster)), "unknown");
  }
});

// Waiting

Deno.test("inspect() waits for a node one time-out from when it could first be asked, and keeps the process alive", async () => {
  for (const readyMs of [0, 70]) {
    const cluster = clusterOf("alice alice hang");
    const [, , node] = cluster.nodes;
    if (readyMs > 0) node.readyAtMs = Infinity;
    const startMs = cluster.nowMs;
    const inspecting = cluster.redlock.inspect("a");
    await cluster.advance(readyMs);
    assertEquals(cluster.clock.timersAlive, 1);
    node.readyAtMs = startMs + readyMs;
    await outcomeOf(cluster, inspecting);
    assertEquals(cluster.nowMs - startMs, readyMs + TIMEOUT_MS);
  }
});

for (
  const [expected, states] of [
    ["unknown", "hang hang hang"],
    ["unknown", "alice hang free"],
    ["held", "alice alice hang"],
    ["free", "free free hang"],
  ] as const
) {
  Deno.test(`inspect() that a close cuts short is ${expected} if nodes have answered ${states}`, async () => {
    const cluster = clusterOf(states);
    const inspecting = cluster.redlock.inspect("a").catch((error) => error);
    await runMicrotasks();
    void cluster.redlock.close();
    const outcome = await inspecting; // without any time passing
    assertEquals([verdict(outcome), outcome.code === "CLOSED"], [expected, expected === "unknown"]);
    const last = outcome.votes.findLast(({ outcome }: { outcome: string }) => outcome === "failed");
    assertEquals(last?.error?.message, "the lock client was closed");
  });
}

test("inspect() refuses a name that no lock may have, and asks no node", async (cluster) => {
  const inspecting = cluster.redlock.inspect("x", { keyPrefix: "hasp:" });
  assertEquals(await cluster.rejection(inspecting) instanceof RangeError, true);
  assertEquals(cluster.asked("inspect"), [0, 0, 0]);
});
