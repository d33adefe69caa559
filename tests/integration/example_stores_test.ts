/** The nodes of the manual on Deno KV and SQLite: two processes share a database. */

import { Redlock } from "@hasp/redlock";
import { assert, assertEquals } from "@std/assert";
import { testLockNode } from "../../src/testing/mod.ts";
import { denoKvNode } from "../examples/deno_kv_node.ts";
import { SqliteNode } from "../examples/sqlite_node.ts";
import { startRemoteNode } from "../support/remote_program.ts";

testLockNode(async () => {
  const folder = await Deno.makeTempDir();
  const start = () => startRemoteNode("deno_kv_node.ts", `${folder}/kv`, "--unstable-kv");
  const own = await start();
  return {
    node: own.node,
    peer: start,
    async close() {
      await own.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}, {
  test: (name, run) => Deno.test(`denoKvNode: ${name}`, run),
  without: ["fencing", "adopting", "sharing", "hang"],
});

/** A database of one process that counts its writes. */
class CountedKv {
  readonly entries = new Map<string, unknown>();
  writes = 0;

  get([, key]: [string, string]) {
    return Promise.resolve({ key: ["lock", key], value: this.entries.get(key) ?? null });
  }

  atomic() {
    const changes: (() => void)[] = [];
    const atomic = {
      check: () => atomic,
      set: ([, key]: [string, string], value: unknown) => {
        changes.push(() => this.entries.set(key, value));
      },
      delete: ([, key]: [string, string]) => changes.push(() => this.entries.delete(key)),
      commit: () => {
        this.writes++;
        for (const change of changes) change();
        return Promise.resolve({ ok: true });
      },
    };
    return atomic;
  }
}

Deno.test("denoKvNode() writes nothing when it denies, and leaves nothing when it releases", async () => {
  const kv = new CountedKv();
  const node = denoKvNode(kv as unknown as Deno.Kv);
  const held = { keys: ["a", "b"], value: "1", ttlMs: 60_000 };
  const other = { keys: ["b", "c"], value: "2", ttlMs: 60_000 };
  assertEquals(await node.acquire(held), "granted");
  assertEquals(await node.extend(held), "granted");
  assertEquals([await node.acquire(other), await node.extend(other)], ["denied", "denied"]);
  assertEquals(await node.release(other), "denied");
  assertEquals([...kv.entries.keys()], ["a", "b"]);
  assertEquals(await node.release({ ...held, keys: ["a", "b", "c"] }), "denied");
  assertEquals([...kv.entries.keys()], []);
  assertEquals(kv.writes, 3);
});

testLockNode(async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/locks.db`;
  return {
    node: new SqliteNode(path),
    peer: () => startRemoteNode("sqlite_node.ts", path),
    close: () => Deno.remove(folder, { recursive: true }),
  };
}, {
  test: (name, run) => Deno.test(`SqliteNode: ${name}`, run),
  without: ["fencing", "adopting", "sharing", "hang"],
});

for (
  const [name, newNode] of [
    ["denoKvNode", () => denoKvNode(new CountedKv() as unknown as Deno.Kv, 0)],
    ["SqliteNode", () => new SqliteNode(":memory:")],
  ] as const
) {
  Deno.test(`${name} is a node of a client, and keeps a key for atLeastMs alone`, async () => {
    await using redlock = new Redlock([newNode()]);
    const lock = await redlock.acquire("report", { ttlMs: 60_000, atLeastMs: 1_000 });
    assertEquals(await redlock.tryAcquire("report"), undefined);
    await lock.extend();
    assert(await lock.release());
    assert((await redlock.inspect("report")).remainingMs <= 1_000);
  });
}
