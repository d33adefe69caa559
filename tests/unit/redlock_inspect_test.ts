import { assertEquals, assertInstanceOf } from "@std/assert";
import { QuorumError } from "../../src/errors.ts";
import { close, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

Deno.test("Redlock.inspect() says that nobody holds it", async () => {
  const cluster = new FakeCluster();
  const inspection = await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals([inspection.held, inspection.remainingMs], [false, 0]);
  assertEquals(inspection.votes.map(({ outcome }) => outcome), ["free", "free", "free"]);
  await close(cluster);
});

Deno.test("Redlock.inspect() says for how long a quorum of keys will live", async () => {
  const cluster = new FakeCluster(5);
  [100, 700, 300, 900].forEach((ttlMs, index) => cluster.nodes[index].set("a", "other", ttlMs));
  const inspection = await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals([inspection.held, inspection.remainingMs], [true, 300]);
  assertEquals(inspection.votes.map(({ outcome }) => outcome), [
    ...Array(4).fill("held"),
    "free",
  ]);
  await close(cluster);
});

Deno.test("Redlock.inspect() counts keys of one value only", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[0].set("a", "one");
  cluster.nodes[1].set("a", "two");
  assertEquals((await settle(cluster, cluster.redlock.inspect("a"))).held, false);
  await close(cluster);
});

for (const mode of ["fail", "hang", "throw"] as const) {
  Deno.test(`Redlock.inspect() never says free where too few can tell and nodes ${mode}`, async () => {
    const cluster = new FakeCluster();
    cluster.set(mode, 0, 1);
    const error = await rejection(cluster, cluster.redlock.inspect("a", TTL));
    assertInstanceOf(error, QuorumError);
    const what = mode === "hang" ? "timed out" : "failed";
    const first = {
      fail: "; first error: node0 is down",
      throw: "; first error: node0 threw",
      hang: "",
    };
    assertEquals(
      error.message,
      `Cannot inspect lock "a": 1 of 3 nodes answered, 1 free, 2 ${what}, 2 are needed${
        first[mode]
      }`,
    );
    assertEquals(error.votes.length, 3);
    assertEquals([cluster.clock.timersAlive, cluster.wheel.size], [0, 0]);
    await close(cluster);
  });

  Deno.test(`Redlock.inspect() says held where a quorum says so and a node does ${mode}`, async () => {
    const cluster = new FakeCluster();
    for (const node of cluster.nodes) node.set("a", "other", 500);
    cluster.set(mode, 0);
    assertEquals((await settle(cluster, cluster.redlock.inspect("a", TTL))).held, true);
    await close(cluster);
  });
}

Deno.test("Redlock.inspect() can't tell where a failing node may make the quorum", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[0].set("a", "other");
  cluster.set("fail", 1);
  assertInstanceOf(await rejection(cluster, cluster.redlock.inspect("a")), QuorumError);
  await close(cluster);
});

Deno.test("Redlock.inspect() asks for the key with its prefix", async () => {
  const cluster = new FakeCluster(1, { keyPrefix: "app:" });
  await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals(cluster.nodes[0].calls[0].keys, ["app:a"]);
  await close(cluster);
});
