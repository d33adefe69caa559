import { assertEquals, assertRejects } from "@std/assert";
import { type QuorumError, RedlockError } from "../../../src/errors.ts";
import { holderOf } from "../../../src/holder.ts";
import { list, type ListedLock, type ListOptions } from "../../../src/operate/mod.ts";
import { Cluster, OTHER_VALUE, REASON, test } from "../../support/cluster.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

const TIMEOUT_MS = 50;

type Steps = (prefix: string) => AsyncIterable<readonly string[]>;

/** Three nodes that list these keys, a step each, and hold "a", "b" and "c". */
function clusterOf(...lists: (Steps | string)[]): Cluster {
  const cluster = new Cluster(lists.length, { nodeTimeoutMs: TIMEOUT_MS });
  lists.forEach((listed, index) => {
    const node = cluster.nodes[index] as KeyspaceNode & { keys?: Steps };
    node.keys = typeof listed === "string" ? stepsOf(...listed.split("|")) : listed;
  });
  for (const key of ["a", "b", "c"]) cluster.occupy(key);
  return cluster;
}

function stepsOf(...steps: string[]): Steps {
  return async function* () {
    for (const step of steps) yield await Promise.resolve(step.split(" ").filter(Boolean));
  };
}

async function names(locks: AsyncIterable<ListedLock>): Promise<string[]> {
  const found: string[] = [];
  for await (const { resource } of locks) found.push(resource);
  return found;
}

function listed(cluster: Cluster, options?: ListOptions): Promise<string[]> {
  return cluster.settle(names(list(cluster.redlock, options)));
}

Deno.test("list() leaves out what is gone by now, other keys than asked for, and those that no lock may have", async () => {
  const cluster = clusterOf("a gone", "a app:a hasp:queue:a", "app: app:b");
  cluster.occupy("app:a", Infinity, OTHER_VALUE);
  for (const key of ["app:", "hasp:queue:a", "app:hasp:x"]) cluster.occupy(key);
  assertEquals(await listed(cluster), ["a", "app:a", "app:"]);
  assertEquals(await listed(clusterOf("a", "ab b", "a"), { prefix: "b" }), ["b"]);
  const prefixed = clusterOf("app:a a", "app: app:hasp:x", "");
  for (const key of ["app:a", "app:", "app:hasp:x"]) prefixed.occupy(key);
  const inherited = Object.create({ keyPrefix: "app:" });
  assertEquals((await listed(prefixed, inherited)).sort(), ["a", "hasp:x"]);
});

Deno.test("list() says who has set a key that nobody holds, and of readers those that a quorum of nodes has", async () => {
  const cluster = clusterOf("a", "a", "a");
  const shown = async () => {
    const found: unknown[] = [];
    for await (const { held, holders } of list(cluster.redlock)) {
      found.push(held, ...holders.map(({ holder }) => holder));
    }
    return found;
  };
  for (const node of cluster.nodes.slice(1)) node.delete("a");
  assertEquals(await cluster.settle(shown()), [false, holderOf(OTHER_VALUE)]);
  const [one, other] = ["1", "2"].map((digit) => `${digit.repeat(40)}:t9wbk1:`);
  cluster.nodes.forEach((node, index) => {
    const sharers = index === 0 ? [other, one] : [one];
    node.inspect = () => Promise.resolve({ value: "", remainingMs: 500, sharers });
  });
  assertEquals(await cluster.settle(shown()), [true, holderOf(one)]);
});

Deno.test("list() never leaves out a key because too few nodes say what they have under it", async () => {
  const cluster = clusterOf("a", "a", "a");
  for (const node of cluster.nodes.slice(1)) node.modes.inspect = "fail";
  assertEquals(await listed(cluster), ["a"]);
  cluster.nodes[0].delete("a");
  const error = await cluster.rejection(names(list(cluster.redlock)));
  assertEquals([(error as QuorumError).code, (error as QuorumError).votes.length], [
    "NO_QUORUM",
    3,
  ]);
});

Deno.test("list() goes on without nodes that fail, hang, throw or list no texts, while a quorum is left", async () => {
  const bad: Record<string, Steps> = {
    "node1 is down": () => {
      throw new Error("node1 is down");
    },
    "node1 is out": () => Promise.reject(new Error("node1 is out")) as never, // of another type
    "it did not answer within 50 ms": () => ({
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    }),
    "value.map is not a function": async function* () {
      yield await Promise.resolve("b" as unknown as string[]);
    },
  };
  for (const [message, steps] of Object.entries(bad)) {
    const cluster = clusterOf("a", steps, "c");
    assertEquals((await listed(cluster)).sort(), ["a", "c"]);
    const failed = cluster.events.filter((event) => event.type === "list-failed");
    assertEquals(failed.map(({ node, error }) => [node, error.message]), [["node1", message]]);
    const without = clusterOf("a", steps, steps);
    const error = await without.rejection(names(list(without.redlock)));
    assertEquals((error as QuorumError).code, "NO_QUORUM");
    assertEquals(cluster.timers, [0, 0]);
  }
});

Deno.test("list() ends by its signal, with the client, and where the caller breaks off, and then ends the nodes' lists", async () => {
  let ended = 0;
  const endless: Steps = async function* () {
    try {
      for (;;) yield await Promise.resolve(["a"]);
    } finally {
      ended++;
    }
  };
  const cluster = clusterOf(endless, endless, endless);
  const stop = new AbortController();
  const aborted = names(list(cluster.redlock, { signal: stop.signal }));
  stop.abort(REASON);
  assertEquals(await aborted.catch((error) => error), REASON);
  ended = 0;
  for await (const { resource } of list(cluster.redlock)) {
    assertEquals(resource, "a");
    break;
  }
  await cluster.advance(0);
  assertEquals(ended, 3);
  const closed = names(list(cluster.redlock)).catch((error) => error);
  await cluster.settle(cluster.redlock.close());
  const error = await closed;
  assertEquals([error.code, error.message], [
    "CLOSED",
    "Cannot list locks: the lock client is closed",
  ]);
  await assertRejects(() => names(list(cluster.redlock)), RedlockError, "is closed");
});

test("list() refuses wrong arguments, and nodes that cannot list their keys", async (cluster) => {
  Object.assign(cluster.nodes[0], { lacks: { list: true } });
  const wrong: [unknown, string][] = [
    ["a", "Cannot list locks as 'options' must be an object: current type is 'string'"],
    [{ prefix: 1 }, "Cannot list locks as 'prefix' must be a string: current type is 'number'"],
    [{ prefx: "" }, "Cannot list locks as option 'prefx' is unknown"],
    [{}, "Cannot list locks as node node0 does not support 'list'"],
  ];
  for (const [options, message] of wrong) {
    const call = () => names(list(cluster.redlock, options as ListOptions));
    await assertRejects(call, TypeError, message);
  }
});
