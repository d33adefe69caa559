import { assertEquals, assertRejects } from "@std/assert";
import { holderOf } from "../../../src/holder.ts";
import { forceRelease, type ForceReleaseOptions } from "../../../src/operate/mod.ts";
import { TTL_MS_MAX } from "../../../src/options.ts";
import { type Cluster, OTHER_VALUE, test } from "../../support/cluster.ts";
import type { Mode } from "../../support/keyspace_node.ts";

const HOLDER = holderOf(OTHER_VALUE);
const NEXT = "the next holder";

function released(cluster: Cluster, holder = HOLDER): Promise<boolean> {
  return cluster.settle(forceRelease(cluster.redlock, "a", { holder, nodeTimeoutMs: 50 }));
}

test("forceRelease() deletes the keys of that holder alone, on all nodes or on some", async (cluster) => {
  cluster.occupy("a");
  assertEquals(await released(cluster, holderOf(NEXT)), false);
  assertEquals(cluster.asked("release"), [0, 0, 0]);
  cluster.nodes[1].set("a", NEXT);
  assertEquals(await released(cluster), true);
  assertEquals(cluster.holders(), [undefined, NEXT, undefined]);
  assertEquals(await released(cluster), false);
  cluster.nodes[0].set("a", OTHER_VALUE);
  assertEquals(await released(cluster), true);
  assertEquals(cluster.holders(), [undefined, NEXT, undefined]);
});

test("forceRelease() never deletes a key that passes to the next holder between its two questions", async (cluster) => {
  cluster.occupy("a");
  for (const node of cluster.nodes) node.before.release = () => node.set("a", NEXT);
  assertEquals(await released(cluster), false);
  assertEquals(cluster.holders(), [NEXT, NEXT, NEXT]);
});

test("forceRelease() goes by the digits of the holder, whatever is behind them", async (cluster) => {
  const value = `${OTHER_VALUE}web-3`;
  cluster.occupy("a", Infinity, value);
  assertEquals(await released(cluster, `${HOLDER} web-3`), false);
  assertEquals(await released(cluster, `${holderOf(value)} web-3`), true);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});

for (
  const [modes, expected, message] of [
    [["answer", "answer", "fail"], true, ""],
    [["answer", "answer", "hang"], true, ""],
    [["answer", "fail", "hang"], undefined, "released it, 1 failed, 1 timed out, 2 are needed"],
    [["fail", "fail", "fail"], undefined, "Cannot inspect lock"],
  ] as const
) {
  test(`forceRelease() of nodes that ${modes} is ${expected ?? "no result"}`, async (cluster) => {
    cluster.occupy("a");
    modes.forEach((mode: Mode, index) => cluster.nodes[index].mode = mode);
    const outcome = await released(cluster).catch((error) => error);
    if (expected) return assertEquals(outcome, true);
    assertEquals([outcome.code, outcome.message.includes(message)], ["NO_QUORUM", true], outcome);
  });
}

for (
  const [modes, expected] of [[["answer", "answer", "fail"], false], [
    ["answer", "fail", "hang"],
    "NO_QUORUM",
  ]] as const
) {
  test(`forceRelease() of a key that others hold on nodes that ${modes} is ${expected}`, async (cluster) => {
    cluster.occupy("a", Infinity, NEXT);
    modes.forEach((mode: Mode, index) => cluster.nodes[index].mode = mode);
    assertEquals(await released(cluster).catch((error) => error.code), expected);
  });
}

test("forceRelease() of a node that cannot be reached is sent for as long as any key may live", async (cluster) => {
  cluster.occupy("a");
  await released(cluster);
  assertEquals(cluster.nodes.map((node) => node.asked("release").map(({ ttlMs }) => ttlMs)), [
    [TTL_MS_MAX],
    [TTL_MS_MAX],
    [TTL_MS_MAX],
  ]);
});

test("forceRelease() refuses wrong arguments, and never goes without a holder", async (cluster) => {
  cluster.occupy("a");
  const holder = /^Cannot release lock as 'holder' must be 8 hexadecimal digits/;
  const wrong: [unknown, unknown, RegExp][] = [
    ["a", undefined, holder],
    ["a", null, /^Cannot release lock as 'options' must be an object/],
    ["a", {}, holder],
    ["a", { holder: "" }, holder],
    ["a", { holder: OTHER_VALUE }, holder],
    ["a", { holder: 12345678 }, holder],
    ["", { holder: HOLDER }, /^Cannot release lock as 'resource' must be a non-empty string: /],
    [["a"], { holder: HOLDER }, /^Cannot release lock as 'resource' must be a non-empty string: /],
    ["a", Object.create({ holder: HOLDER, keyPrefix: 1 }), /'keyPrefix' must be a string/],
    ["a", { holder: HOLDER, force: true }, /^Cannot release lock as option 'force' is unknown/],
  ];
  for (const [resource, options, message] of wrong) {
    const error = await assertRejects(
      () => forceRelease(cluster.redlock, resource as string, options as ForceReleaseOptions),
      TypeError,
    );
    assertEquals(message.test(error.message), true, error.message);
  }
  assertEquals(cluster.asked("release"), [0, 0, 0]);
});
