import {
  assertEquals,
  assertGreaterOrEqual,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { QuorumError, Redlock } from "../../mod.ts";
import { ConnectionError } from "../../src/redis/mod.ts";
import { testLockNode } from "../../src/testing/mod.ts";
import { subscribeOver } from "../../src/upstash/event_stream.ts";
import { upstashNode, type UpstashNodeOptions } from "../../src/upstash/mod.ts";
import { type Recipe, runCrowd } from "../support/crowd.ts";
import { eventually } from "../support/eventually.ts";
import { onStore, realStore } from "../support/nodes_to_test.ts";
import { testQueue } from "./queue_cases.ts";
import { startServer, startServers } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";
import { type Bridge, type BridgeFaults, startBridge } from "../support/upstash_bridge.ts";

/** How many locks the crowd takes, and how many faults it survives at least. */
const LOCKS = 150;
const FAULTS = 8;

const at = ({ url, token }: Bridge) => upstashNode({ url, token });

const store = realStore(shareServers(1));

const onBridge = () =>
  onStore(store, (url) => {
    const bridge = startBridge(url);
    return { node: at(bridge), close: () => bridge.close() };
  });
const named = (name: string, run: () => Promise<void>) => {
  Deno.test(`upstashNode(): ${name}`, run);
};

testLockNode(onBridge, { test: named });
testQueue(onBridge, named);

/** What gateways answer in place of the server, and what is said about it. */
const GIVEN_UP: readonly [give: () => Response, why: string][] = [
  [() => new Response("Bad gateway", { status: 502 }), "HTTP 502"],
  [() => Response.json({ message: "Endpoint request timed out" }, { status: 504 }), "HTTP 504"],
  [() => Response.json({ message: "Too many requests" }), "no result and no error"],
  [() => Response.json([{ result: "OK" }], { status: 500 }), "HTTP 500"],
  [() => new Response("<p>Welcome</p>"), "HTTP 200 without JSON"],
  [() => new Response('[{"result":7c1f09be'), "HTTP 200 without JSON"],
  [() => new Response(endless()), "HTTP 200 with more than 1048576 bytes"],
];

Deno.test("upstashNode() takes what a gateway answers in place of the server for no reply", async () => {
  await using server = await startServer();
  for (const [give, why] of GIVEN_UP) {
    await using bridge = startBridge(server.url, { givesUp: give });
    await using redlock = new Redlock([at(bridge)]);
    const error = await assertRejects(() => redlock.tryAcquire("invoice:42"), QuorumError);
    assertEquals(error.votes.map(({ outcome }) => outcome), ["failed"]);
    assertInstanceOf(error.votes[0].error, ConnectionError);
    assertEquals((error.votes[0].error as ConnectionError).outcome, "unknown");
    assertEquals(error.votes[0].error?.message.endsWith(`: ${why}`), true, error.message);
  }
});

Deno.test("upstashNode() follows no redirect with a command, and its vote says so", async () => {
  await using server = await startServer();
  await using elsewhere = startElsewhere();
  for (const status of [301, 302, 303, 307, 308]) {
    await using bridge = startBridge(server.url, { givesUp: () => elsewhere.redirect(status) });
    await using redlock = new Redlock([at(bridge)]);
    const error = await assertRejects(() => redlock.tryAcquire("invoice:42"), QuorumError);
    assertEquals(elsewhere.requests, 0);
    assertEquals(
      error.votes[0].error?.message,
      `Cannot get reply from ${
        error.votes[0].node
      }: HTTP ${status}: a redirect, which is not followed`,
    );
  }
});

Deno.test("upstashNode() follows no redirect with a subscription, and waiting calls poll", async () => {
  await using elsewhere = startElsewhere();
  let redirects = 0;
  await using scene = await Scene.of({
    givesUp({ pathname }) {
      if (!pathname.startsWith("/subscribe/")) return undefined;
      redirects++;
      return elsewhere.redirect(307);
    },
  });
  const lock = await scene.holder.acquire("invoice:42", { ttlMs: 60_000 });
  const waiting = scene.waiter.acquire("invoice:42", { waitMs: 60_000 });
  await eventually(() => redirects >= 2);
  await lock.release();
  await using _next = await waiting;
  assertEquals(elsewhere.requests, 0);
});

Deno.test("upstashNode() says why Node's fetch failed, which only the cause says", async () => {
  const { fetch } = globalThis;
  await using redlock = new Redlock([upstashNode({ url: "https://a.example.com", token: "t" })]);
  const refused = { message: "", code: "ECONNREFUSED" }; // as of several addresses of one name
  try {
    for (const cause of [new Error("connect ECONNREFUSED"), refused]) {
      globalThis.fetch = () => Promise.reject(new TypeError("fetch failed", { cause }));
      const { votes } = await assertRejects(() => redlock.tryAcquire("invoice:42"), QuorumError);
      const why = `: fetch failed: ${cause.message || "ECONNREFUSED"}`;
      assertEquals(votes[0].error?.message.includes(why), true, votes[0].error?.message);
    }
  } finally {
    globalThis.fetch = fetch;
  }
});

Deno.test("upstashNode() takes no reply from the cache of a runtime's fetch", async () => {
  const { fetch } = globalThis;
  const cache = new Map<string, Promise<Response>>();
  globalThis.fetch = async (url, init: RequestInit & { cache?: string } = {}) => { // as Next does
    if (init.cache === "no-store") return fetch(url, init);
    const key = `${url} ${init.body}`;
    const response = cache.get(key) ?? fetch(url, init);
    cache.set(key, response);
    return (await response).clone();
  };
  try {
    await using scene = await Scene.of({});
    assertEquals((await scene.waiter.inspect("invoice:42")).held, false);
    await using _lock = await scene.holder.acquire("invoice:42");
    assertEquals((await scene.waiter.inspect("invoice:42")).held, true);
  } finally {
    globalThis.fetch = fetch;
  }
});

Deno.test("upstashNode() lets no two clients hold the lock at once while nodes die and hang, and requests are late or lost", async () => {
  await using servers = await startServers(5);
  const bridges = new Map(servers.map(({ url }) => [
    url,
    startBridge(url, {
      delayMs: () => Math.random() < 0.03 ? Math.random() * 100 : 0,
      givesUp: () =>
        Math.random() < 0.01 ? GIVEN_UP[Math.floor(Math.random() * 3)][0]() : undefined,
    }),
  ]));
  const recipe: Recipe = (url) => {
    const bridge = bridges.get(url)!;
    return { node: at(bridge), close: () => {} };
  };
  const report = await runCrowd([recipe], servers, { locks: LOCKS, faults: FAULTS });
  for (const bridge of bridges.values()) await bridge.close();
  assertEquals(report.overlaps, 0);
  assertGreaterOrEqual(report.locks, LOCKS);
  assertGreaterOrEqual(report.faults, FAULTS);
});

for (const lineEnd of ["\n", "\r\n"] as const) {
  Deno.test(`upstashNode() notifies a waiting call by events whose lines end with ${JSON.stringify(lineEnd)}`, async () => {
    await using scene = await Scene.of({ lineEnd });
    const lock = await scene.holder.acquire("invoice:42", { ttlMs: 60_000 });
    const waiting = scene.waiter.acquire("invoice:42", { waitMs: 60_000 });
    await eventually(async () => (await scene.holder.inspect("invoice:42")).waiters === 1);
    assertEquals(scene.bridge.subscriptions, 1);
    await lock.release();
    await using _next = await waiting;
    assertEquals(scene.wakings, 1);
  });
}

Deno.test("upstashNode() subscribes again if the gateway ends the stream of events", async () => {
  await using scene = await Scene.of({});
  const lock = await scene.holder.acquire("invoice:42", { ttlMs: 60_000 });
  const waiting = scene.waiter.acquire("invoice:42", { waitMs: 60_000 });
  await eventually(() => scene.bridge.subscriptions === 1);
  scene.bridge.endSubscriptions();
  assertEquals(scene.bridge.subscriptions, 0);
  await eventually(() => scene.bridge.subscriptions === 1);
  await lock.release();
  await using _next = await waiting;
});

Deno.test("subscribeOver() passes on the messages of its channel, cut anywhere, and is lost by one without an end", async () => {
  let chunks: string[] = [];
  let type = "text/event-stream";
  const handler = () => {
    const body = ReadableStream.from(chunks).pipeThrough(new TextEncoderStream());
    return new Response(body, { headers: { "content-type": type } });
  };
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, handler);
  const url = new URL(`http://127.0.0.1:${server.addr.port}/`);
  const events: string[] = [];
  const onMessage = (message: string | Uint8Array) => void events.push(String(message));
  const onLost = () => void events.push("lost");
  const subscribe = async (...sent: string[]) => {
    chunks = sent;
    const { signal } = new AbortController();
    await subscribeOver(url, {}, (error) => new Error(`no: ${error}`))(
      "c",
      { onMessage, onLost },
      signal,
    );
    await eventually(() => events.includes("lost"));
    return events.splice(0);
  };
  const begin = [
    "data:subscribe,c,1\r",
    "\n\r\ndata: message,d,1\n\nda",
    "ta: message,c, a\ndata: b\n\n",
  ];
  const long = `data: message,c,${"x".repeat(70_000)}`;
  assertEquals(await subscribe(...begin, "event: e\n\n", long, "\n\n"), [" a\nb", "lost"]);
  type = "application/json";
  await assertRejects(() => subscribe('{"result": 1}'), Error, "no: no stream of events");
  await assertRejects(() => subscribe('{"error": "ERR x"}'), Error, "no: ERR x");
});

Deno.test("upstashNode() ends the stream of events with its client", async () => {
  await using scene = await Scene.of({});
  await using _lock = await scene.holder.acquire("invoice:42");
  const refused = assertRejects(() => scene.waiter.acquire("invoice:42", { waitMs: 60_000 }));
  await eventually(() => scene.bridge.subscriptions === 1);
  await eventually(async () => (await scene.holder.inspect("invoice:42")).waiters === 1);
  await collectGarbage(); // in Deno, the signal of a response that was collected ends nothing
  await scene.waiter.close();
  await refused;
  await eventually(() => scene.bridge.subscriptions === 0);
});

Deno.test("upstashNode() shows the database's error for a wrong token, without the token, and ends the call at once", async () => {
  await using server = await startServer();
  await using bridge = startBridge(server.url);
  await using redlock = new Redlock([upstashNode({ url: bridge.url, token: "wrong" })]);
  const startMs = performance.now();
  const error = await assertRejects(() => redlock.acquire("a", { waitMs: 60_000 }), QuorumError);
  assertLess(performance.now() - startMs, 30_000);
  assertEquals(error.message.includes("WRONGPASS"), true, error.message);
  assertEquals(error.message.includes("wrong"), false, error.message);
});

Deno.test("upstashNode() names a node by the host and the path of its URL", () => {
  for (const name of ["eu-1.example.com", "127.0.0.1:8080/one", "127.0.0.1:8080/two/x"]) {
    for (const end of ["", "/"]) {
      assertEquals(upstashNode({ url: `https://${name}${end}`, token: "t" }).name, name);
    }
  }
});

Deno.test("upstashNode() reports bad options, and shows no secret", () => {
  const url = "https://eu-1.example.com";
  const wrong: [unknown, string][] = [
    [{ url: "eu-1.example.com", token: "t" }, "'url' must be"],
    [{ url: "rediss://eu-1.example.com", token: "t" }, "'url' must be"],
    [{ url: "https://:secret@eu-1.example.com", token: "t" }, "'url' must be"],
    [{ url: `${url}/?db=secret`, token: "t" }, "'url' must be"],
    [{ url: `${url}/#secret`, token: "t" }, "'url' must be"],
    [{ url, token: "" }, "'token' must be a non-empty string"],
    [{ url }, "visible ASCII characters: current type is 'undefined'"],
    [
      { url, token: "my\nsecret" },
      "'token' must be a non-empty string of visible ASCII characters",
    ],
    [{ url, token: "t", timeout: 1 }, "option 'timeout' is unknown"],
  ];
  for (const [options, message] of wrong) {
    const error = assertThrows(() => upstashNode(options as UpstashNodeOptions), TypeError);
    assertEquals(error.message.includes(message), true, error.message);
    assertEquals(error.message.includes("secret"), false);
  }
});

/** A server to which a gateway redirects. */
function startElsewhere() {
  let requests = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    requests++;
    return Response.json({ result: "OK" });
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  return {
    get requests() {
      return requests;
    },
    redirect: (status: number) => Response.redirect(url, status),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** The body of a response that never ends. */
function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(65_536).fill(0x20));
    },
  });
}

/** Collects what only this task still refers to, too. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  await new Promise((resolve) => setTimeout(resolve, 0));
  runInNewContext("gc")();
}

/** A server behind a gateway, and two clients. */
class Scene implements AsyncDisposable {
  readonly bridge: Bridge;
  readonly holder: Redlock;
  readonly waiter: Redlock;
  /** How often the waiting call was notified. */
  wakings = 0;
  readonly #server: AsyncDisposable;

  constructor(bridge: Bridge, server: AsyncDisposable) {
    this.bridge = bridge;
    this.#server = server;
    this.holder = new Redlock([at(bridge)]);
    this.waiter = new Redlock([at(bridge)], {
      onEvent: ({ type }) => void (type === "woken" && this.wakings++),
    });
  }

  static async of(faults: BridgeFaults): Promise<Scene> {
    const server = await startServer();
    return new Scene(startBridge(server.url, faults), server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.waiter.close();
    await this.holder.close();
    await this.bridge.close();
    await this.#server[Symbol.asyncDispose]();
  }
}
