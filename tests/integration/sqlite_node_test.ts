/** The node of the manual on SQLite: two processes share its database. */

import { assert, assertEquals } from "@std/assert";
import { Redlock } from "@hasp/redlock";
import { testLockNode } from "../../src/testing/mod.ts";
import { SqliteNode } from "../examples/sqlite_node.ts";
import { startRemoteNode } from "../support/remote_program.ts";

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

Deno.test("SqliteNode locks by several files, and by the same ones again once it is released", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const nodes = ["a", "b", "c"].map((name) => new SqliteNode(`${folder}/${name}.db`));
    await using redlock = new Redlock(nodes);
    const lock = await redlock.acquire("report");
    assertEquals(await redlock.tryAcquire("report"), undefined);
    await lock.extend();
    assert(await lock.release());
    assert(await redlock.tryAcquire("report"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
