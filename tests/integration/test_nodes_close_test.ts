/**
 * Nodes in memory that are closed by a call.
 */
import { assertRejects } from "@std/assert";
import { createRedlock, QuorumError } from "../../mod.ts";
import { startNodes } from "../../src/testing/mod.ts";

Deno.test("startNodes() gives nodes that can be closed without await using, more than once", async () => {
  const nodes = await startNodes(2);
  const redlock = createRedlock(nodes.addresses, { waitMs: 0 });
  const lock = await redlock.acquire("a");
  await lock.release();
  await nodes.close();
  await nodes.close();
  await assertRejects(() => redlock.acquire("a"), QuorumError);
  await assertRejects(() => nodes.node(0).restart(), Error, "as it was closed");
  await redlock.close();
});
