import { assertEquals } from "@std/assert";
import { commandNode } from "../../../src/nodes/mod.ts";
import { type QuorumNode, quorumNodes } from "../../../src/quorum/quorum_node.ts";
import { STATE_LUA } from "../../../src/redis_node/restart_guard.ts";
import { systemClock } from "../../../src/time/clock.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClient } from "../../support/fake_client.ts";
import { FakeRequest } from "../../support/fake_request.ts";

const HOUR_MS = 3_600_000;
const GUARD_MS = 60_000;

/** Runs with a node on a server that was started, and marked as created, an hour ago. */
async function withOldServer(run: (client: FakeClient, node: QuorumNode) => Promise<void>) {
  let aheadMs = 0;
  const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
  await using client = await FakeClient.open({ clock });
  await client.send(["SET", "hasp:born", String(Math.floor(clock.wallMs()))]);
  aheadMs = HOUR_MS;
  const node = quorumNodes.get(commandNode({ name: "a", send: client.send }))!;
  try {
    await run(client, node);
  } finally {
    await node.close!();
  }
}

function ask(node: QuorumNode, key: string): FakeRequest {
  const request = new FakeRequest(key, { guardMs: GUARD_MS });
  node.ask("acquire", request, 0);
  return request;
}

Deno.test("commandNode() guards against a restart that no connection shows", async () => {
  await withOldServer(async (client, node) => {
    const before = ask(node, "k");
    await eventually(() => before.answers.length > 0);
    assertEquals([before.outcomes, client.pendingMax], [["granted"], 1]); // asked behind it
    client.server.restart({ keepData: true });
    // The client connects again by itself, before the node sends anything.
    await eventually(() => client.value("k").then(() => true, () => false));
    const after = ask(node, "l");
    await eventually(() => after.answers.length > 0);
    assertEquals(after.outcomes, ["quarantined"]);
  });
});

Deno.test("commandNode() never judges a server that does not reply by an earlier reply", async () => {
  await withOldServer(async (client, node) => {
    const before = ask(node, "k");
    await eventually(() => before.answers.length > 0);
    assertEquals(before.outcomes, ["granted"]);
    client.fate = (args) => args[1] === STATE_LUA ? { error: new Error("LOADING data") } : {};
    const after = ask(node, "l");
    await eventually(() => after.answers.length > 0);
    assertEquals(after.outcomes, ["failed"]);
  });
});

Deno.test("commandNode() never judges one lock by what was asked for another", async () => {
  await withOldServer(async (client) => {
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const send = async (args: string[]) => {
      const reply = await client.send(args);
      if (args[1] === STATE_LUA && asked++ === 0) await gate.promise;
      return reply;
    };
    const node = quorumNodes.get(commandNode({ name: "a", send }))!;
    const first = ask(node, "k"); // finds the marker
    await eventually(() => asked === 1);
    client.server.flush();
    const second = ask(node, "l"); // finds none
    await eventually(() => second.answers.length > 0);
    gate.resolve();
    await eventually(() => first.answers.length > 0);
    assertEquals([first.outcomes, second.outcomes], [["granted"], ["quarantined"]]);
    await node.close!();
  });
});
