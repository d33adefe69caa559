import {
  assert,
  assertEquals,
  assertGreater,
  assertLessOrEqual,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { publishedNode } from "../../src/nodes/published_node.ts";
import type { LockNode } from "../../src/quorum/lock_node.ts";
import { NODES_MAX } from "../../src/client_nodes.ts";
import { check, forceRelease, list } from "../../src/operate/mod.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Redlock } from "../../src/redlock.ts";
import { typeOf } from "../../src/validate.ts";
import { Cluster, test, TTL_MS, VALIDITY_MS } from "../support/cluster.ts";

const notNodes = (type: string) =>
  "'nodes' must be a non-empty array of objects that implement LockNode: " +
  `current type is '${type}'; createRedlock() takes addresses, and commandNode() a client`;
const NOT_NODES = notNodes("Array");

const NO_COPY = "neither a Proxy of one nor one of another copy of this package will do";
const HALF = { name: "n", acquire() {}, extend() {}, inspect() {} };

/** Nodes that no client has. */
function nodesOf(count: number): LockNode[] {
  return new Cluster(count).nodes.map((node) => publishedNode(node.peer()));
}

for (
  const [what, nodes, Class, reason] of [
    ["no nodes", [], TypeError, notNodes("empty Array")],
    ["a text in place of nodes", "n", TypeError, notNodes("string")],
    ["undefined in place of nodes", undefined, TypeError, notNodes("undefined")],
    ["an empty object among nodes", [{}], TypeError, NOT_NODES],
    ["null among nodes", [null], TypeError, NOT_NODES],
    ["an address among nodes", ["redis://h"], TypeError, NOT_NODES],
    ["a node without a name", [{ ...HALF, name: 1 }], TypeError, NOT_NODES],
    ["a name alone among nodes", [{ name: "n" }], TypeError, NOT_NODES],
    ["a node that cannot release", [HALF], TypeError, "node n has no method 'release'"],
    ["one node twice", Array(2).fill(nodesOf(1)[0]), TypeError, "two nodes have the name node0"],
    [
      "too many nodes",
      Array(NODES_MAX + 1).fill(HALF),
      RangeError,
      "'nodes' must have at most 31 elements: current value is 32",
    ],
  ] as const
) {
  Deno.test(`Redlock refuses ${what}`, () => {
    const error = assertThrows(() => new Redlock(nodes as LockNode[]), Class);
    assertEquals(error.message, `Cannot create lock client as ${reason}`);
  });
}

Deno.test("Redlock keeps its own copy of nodes and options, and runs on the runtime's clock without leaving a timer", async () => {
  const nodes = nodesOf(1);
  const options = { ttlMs: TTL_MS };
  const redlock = new Redlock(nodes, options);
  options.ttlMs = 2 * TTL_MS;
  nodes.length = 0;
  assertLessOrEqual(await redlock.using("a", (lock) => lock.remainingMs()), VALIDITY_MS);
  assert((await redlock.acquire("a")).held);
  await redlock.close();
});

test("every call refuses a resource that is no non-empty string, and asks nobody", async (cluster) => {
  const { redlock } = cluster;
  const acquire = (type: string) =>
    `Cannot acquire lock as 'resource' must be a non-empty string or a non-empty array of them: current type is '${type}'`;
  for (
    const [call, message] of [
      ...[[], "", null as never].flatMap((resource) =>
        [
          () => redlock.acquire(resource),
          () => redlock.tryAcquire(resource),
          () => redlock.using(resource, () => {}),
        ].map((call) => [call, acquire(typeOf(resource))] as const)
      ),
      ...["", ["a"], undefined].map((resource) =>
        [
          () => redlock.inspect(resource as string),
          `Cannot inspect lock as 'resource' must be a non-empty string: current type is '${
            typeOf(resource)
          }'`,
        ] as const
      ),
      [
        () => redlock.using("a", undefined, undefined as unknown as () => void),
        "Cannot acquire lock as 'routine' must be a function: current type is 'undefined'",
      ],
      [
        // whose options must not be ignored
        () => redlock.using("a", (() => {}) as RedlockOptions, { ttlMs: 1_000 } as never),
        "Cannot acquire lock as 'routine' must be a function: current type is 'Object'",
      ],
    ] as const
  ) {
    const error = await cluster.rejection(call());
    assertEquals([error.constructor, error.message], [TypeError, message]);
  }
  assertEquals(cluster.steps, ["", "", ""]);
});

test("Redlock shows no value in errors and events", async (cluster) => {
  const lock = await cluster.lock();
  const error = await cluster.refusal({ waitMs: 0 });
  cluster.set("fail");
  await cluster.advance(2_000);
  await cluster.settle(lock.release());
  assertGreater(cluster.values.length, 1);
  const shown = Deno.inspect([error, cluster.events, lock.signal.reason], { depth: 10 });
  assertEquals(cluster.values.filter((value) => shown.includes(value)), []);
});

test("Redlock calls the call's listener in place of the client's own", async (cluster) => {
  const types: string[] = [];
  await cluster.lock({ onEvent: ({ type }) => void types.push(type) });
  assertEquals([types, cluster.events], [["attempt", "acquired"], []]);
});

Deno.test("Redlock refuses a node of another client, open or closed, and takes one that no client got", async () => {
  const nodes = nodesOf(3);
  assertThrows(() => new Redlock(nodes, { ttlMs: 1 }), RangeError, "Cannot create lock client as");
  const redlock = new Redlock(nodes);
  const refuse = () => {
    const { message } = assertThrows(() => new Redlock([nodes[1]]), TypeError);
    assertEquals(message, "Cannot create lock client as node node1 belongs to another lock client");
  };
  refuse();
  await redlock.close();
  refuse();
});

for (
  const [what, wrap] of [
    ["through a Proxy", (redlock: Redlock) => new Proxy(redlock, {})],
    ["without its client", () => undefined],
    ["on an object that inherits from the class", () => Object.create(Redlock.prototype)],
  ] as const
) {
  Deno.test(`Redlock rejects a call of a method ${what}, and says why`, async () => {
    const redlock = new Redlock([nodesOf(1)[0]]);
    const { prototype } = Redlock;
    const target = wrap(redlock);
    for (
      const [attempt, call] of [
        ["acquire lock", () => prototype.acquire.call(target, "a")],
        ["acquire lock", () => prototype.tryAcquire.call(target, "a")],
        ["acquire lock", () => prototype.using.call(target, "a", () => {})],
        ["acquire lock", () => prototype.lead.call(target, "a", () => {})],
        ["inspect lock", () => prototype.inspect.call(target, "a")],
        ["adopt lock", () => prototype.adopt.call(target, "token")],
        ["close lock client", async () => await prototype.close.call(target)],
        ["check nodes", () => check(target)],
        ["list locks", () => list(target).next()],
        ["release lock", () => forceRelease(target, "a", { holder: "00000000" })],
      ] as const
    ) {
      const { message } = await assertRejects<TypeError>(call, TypeError);
      assertEquals(
        message,
        `Cannot ${attempt} as 'redlock' must be a Redlock: current type is '${typeOf(target)}'; ${
          target ? NO_COPY : "call methods on their client"
        }`,
      );
    }
    await redlock.close();
  });
}
