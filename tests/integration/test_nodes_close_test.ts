/** Nodes in memory that are closed by a call, and their connections. */
import { assertRejects } from "@std/assert";
import { Socket } from "node:net";
import { createRedlock, QuorumError } from "../../mod.ts";
import { connect, ConnectionError } from "../../src/redis/mod.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";

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

Deno.test("TestNode.crash() closes connections where sockets cannot be reset, as in Deno 2.5", async () => {
  const { prototype } = Socket;
  const reset = Object.getOwnPropertyDescriptor(prototype, "resetAndDestroy")!;
  Reflect.deleteProperty(prototype, "resetAndDestroy");
  try {
    await using nodes = await startNodes(1);
    await using client = await connect(nodes.addresses[0]);
    nodes.node(0).hang();
    const reply = client.send(["PING"]);
    const lost = assertRejects(() => reply, ConnectionError);
    await nodes.node(0).crash();
    await lost;
    await nodes.node(0).restart();
    await eventually(async () => await client.send(["PING"]).catch(() => "") === "PONG");
  } finally {
    Object.defineProperty(prototype, "resetAndDestroy", reset);
  }
});
