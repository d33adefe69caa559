/** The examples that are made of other libraries, on real servers. */

import {
  createRedlock,
  LockHeldError,
  QuorumError,
  type Redlock,
  type RedlockEvent,
} from "@hasp/redlock";
import { startNodes } from "@hasp/redlock/testing";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { delay } from "@std/async";
import { Hono } from "hono";
import { exclusive, type Guarded } from "../examples/hono_guard.ts";
import { exclusive as exclusiveHandler } from "../examples/http_statuses.ts";
import { logTo } from "../examples/pino.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";

/** Handlers that do work of some length for a path. */
type Post = (path: string, signal: AbortSignal) => Response | Promise<Response>;
const GUARDS: Record<string, (redlock: Redlock, work: () => Promise<void>) => Post> = {
  "Hono example": (redlock, work) => {
    const app = new Hono<Guarded>();
    app.post("/pay/:id", exclusive(redlock), async (c) => {
      await work();
      return c.text("paid");
    });
    return (path, signal) => app.request(path, { method: "POST", signal });
  },
  "Handler example": (redlock, work) => {
    const handle = exclusiveHandler(redlock, async () => {
      await work();
      return new Response("paid");
    });
    return (path, signal) => handle(new Request(`http://shop${path}`, { method: "POST", signal }));
  },
};

for (const [name, guard] of Object.entries(GUARDS)) {
  for (const workMs of [30, 700]) {
    Deno.test(`${name} works once for a double click that takes ${workMs} ms`, async () => {
      await using servers = await startServers(3);
      await using redlock = createRedlock(servers.urls);
      let works = 0;
      const post = guard(redlock, () => {
        works++;
        return delay(workMs);
      });
      const first = new AbortController();
      const paying = post("/pay/1", first.signal);
      first.abort(); // as browsers do when a form is sent again
      const responses = await Promise.all([paying, post("/pay/1", new AbortController().signal)]);
      await Promise.all(responses.map((response) => response.text()));
      assertEquals(responses.map(({ status }) => status).sort(), [200, 409]);
      assertEquals(works, 1);
    });
  }
}

Deno.test("Hono example answers 200, 409 and 503, and 500 if the handler throws", async () => {
  await using servers = await startServers(3);
  await using redlock = createRedlock(servers.urls);
  const app = new Hono<Guarded>();
  app.post("/pay/:id", exclusive(redlock), (c) => c.text(`paid ${c.get("signal").aborted}`));
  app.post("/fail/:id", exclusive(redlock), () => {
    throw new Error("no money");
  });
  app.onError((error, c) => c.text(error.message, 500));
  const post = async (path: string): Promise<[number, string]> => {
    const response = await app.request(path, { method: "POST" });
    return [response.status, await response.text()];
  };
  assertEquals(await post("/pay/1"), [200, "paid false"]);
  {
    await using lock = await redlock.acquire("/pay/2");
    assert(lock.held);
    assertEquals(await post("/pay/2"), [409, '{"error":"already being processed"}']);
  }
  assertEquals(await post("/pay/2"), [200, "paid false"]);
  assertEquals(await post("/fail/1"), [500, "no money"]);
  assertEquals((await redlock.inspect("/fail/1")).held, false);
  await Promise.all(servers.map((server) => server.pause()));
  assertEquals(await post("/pay/3"), [503, '{"error":"lock service unavailable"}']);
  await Promise.all(servers.map((server) => server.resume()));
});

interface Line {
  readonly level: number;
  readonly name: string;
  readonly msg: RedlockEvent["type"];
  readonly [field: string]: unknown;
}

const [INFO, WARN, ERROR] = [30, 40, 50];

/** A listener of the example, and the lines that it writes. */
function logging() {
  const lines: Line[] = [];
  const onEvent = logTo({ write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, onEvent };
}

Deno.test("pino example writes a line of JSON for what matters, at the level that it has", async () => {
  const { lines, onEvent } = logging();
  await using nodes = await startNodes(3);
  await using redlock = createRedlock(nodes.addresses, {
    onEvent,
    waitMs: 0,
    nodeTimeoutMs: 5_000,
  });
  const lock = await redlock.acquire("invoice:42", { ttlMs: 3_000 });
  await assertRejects(() => redlock.acquire("invoice:42"), LockHeldError);
  await eventually(() => assertEquals(lock.signal.aborted, true));
  await nodes.node(0).crash();
  await nodes.node(1).crash();
  await assertRejects(() => redlock.acquire("invoice:43"), QuorumError);
  await eventually(() => {
    assertEquals(lines.filter(({ msg }) => msg === "node-disconnected").length, 2);
  });
  const written = (type: string) => lines.filter(({ msg }) => msg === type);
  const kinds = new Set(lines.map(({ name, level, msg, reason }) => {
    return [name, level, msg, reason].join(" ").trim();
  }));
  assertEquals(
    kinds,
    new Set([
      `redlock ${INFO} node-connected`,
      `redlock ${INFO} denied held`,
      `redlock ${ERROR} lost expired`,
      `redlock ${WARN} node-disconnected`,
      `redlock ${ERROR} denied no-quorum`,
    ]),
  );
  const [{ resources, cause, heldMs }] = written("lost");
  assertEquals([resources, typeof heldMs], [["invoice:42"], "number"]);
  assertEquals((cause as Error).message, "its validity has ended");
  const [{ error, node }] = written("node-disconnected");
  assertMatch((error as Error).message, /^Connection to redis:\/\/127\.0\.0\.1:\d+ was lost/u);
  assertMatch(String(node), /^redis:\/\/127\.0\.0\.1:\d+$/u);
  const [{ votes }] = written("denied");
  assertMatch(String(votes), /^(redis:\/\/127\.0\.0\.1:\d+ denied,?)+$/u);
});
