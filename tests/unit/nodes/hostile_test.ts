import { assertEquals, assertInstanceOf } from "@std/assert";
import { Redlock, type RedlockEvent } from "../../../mod.ts";
import { check } from "../../../src/operate/mod.ts";
import { commandNode, type CommandNodeOptions, type LockNode } from "../../../src/nodes/mod.ts";
import { startFakeClock } from "../../../src/testing/mod.ts";
import { FakeClient } from "../../support/fake_client.ts";
import { HOSTILE } from "../../support/hostile.ts";

/** Where a client can throw or return something, as the options of its node. */
const CLIENTS: Readonly<Record<string, (make: () => unknown) => Partial<CommandNodeOptions>>> = {
  "send rejects with": (make) => ({ send: () => rejected(make) }),
  "send throws": (make) => ({
    send() {
      throw make();
    },
  }),
  "send resolves to": (make) => ({ send: () => Promise.resolve(make()) }),
  "send returns": (make) => ({ send: () => make() as Promise<unknown> }),
  "pipeline rejects with": (make) => ({ pipeline: () => rejected(make) }),
  "pipeline resolves to": (make) => ({ pipeline: () => Promise.resolve(make() as unknown[]) }),
  "pipeline resolves to arrays of": (make) => ({
    pipeline: (commands) => Promise.resolve(commands.map(make)),
  }),
  "subscribe rejects with": (make) => ({ subscribe: () => rejected(make) as Promise<() => void> }),
  "subscribe resolves to": (make) => ({ subscribe: () => Promise.resolve(make() as () => void) }),
  "the end of a subscription rejects with": (make) => ({
    subscribe: (_channel, listener) => {
      queueMicrotask(() => listener.onLost());
      return Promise.resolve(() => rejected(make));
    },
  }),
  "a message is": (make) => ({
    subscribe: (_channel, listener) => {
      listener.onMessage(make() as string);
      return Promise.resolve(() => {});
    },
  }),
};

/** What a node does, in each of its methods. */
const NODES: Readonly<Record<string, (make: () => unknown) => () => unknown>> = {
  "throws": (make) => () => {
    throw make();
  },
  "rejects with": (make) => () => Promise.reject(make()),
  "returns": (make) => make,
};
const METHODS = ["acquire", "extend", "release", "raiseCounters", "inspect", "diagnose", "close"];

for (const [what, make] of Object.entries(HOSTILE)) {
  for (const [where, options] of Object.entries(CLIENTS)) {
    Deno.test(`commandNode() keeps it in its vote that ${where} ${what}`, async () => {
      using clock = startFakeClock();
      await clock.tickUntil(useBesideTwo((client) => node(client, options(make))));
    });
  }
  for (const [how, act] of Object.entries(NODES)) {
    Deno.test(`Redlock keeps it in its vote that a node ${how} ${what}`, async () => {
      using clock = startFakeClock();
      const acts = Object.fromEntries(METHODS.map((name) => [name, act(make)]));
      const hostile = Object.assign(acts, { name: "hostile" }) as unknown as LockNode;
      await clock.tickUntil(useBesideTwo(() => hostile));
    });
  }
}

let nodes = 0;

/** Two locks, a wait, an inspection, a check and the close, with one hostile node in three. */
async function useBesideTwo(hostile: (client: FakeClient) => LockNode): Promise<void> {
  const clients = await Promise.all([0, 1, 2].map(() => FakeClient.open()));
  const [client, ...others] = clients;
  const events: RedlockEvent[] = [];
  const redlock = new Redlock([hostile(client), ...others.map((each) => node(each))], {
    nodeTimeoutMs: 100,
    fencing: true,
    onEvent: (event) => events.push(event),
  });
  const lock = await redlock.acquire(["invoice:42", "invoice:43"], { ttlMs: 2_000 });
  const waiting = redlock.acquire("invoice:42", { ttlMs: 2_000, waitMs: 1_000 });
  await lock.extend();
  assertEquals((await redlock.inspect("invoice:42")).held, true);
  Deno.inspect((await check(redlock)).nodes);
  assertEquals(await lock.release(), true);
  await (await waiting).release();
  await redlock.close();
  for (const event of events) Deno.inspect(event);
  for (const { error } of lock.votes) if (error) assertInstanceOf(error, Error);
  for (const client of clients) await client[Symbol.asyncDispose]();
}

/** A node on a client, of which it has all that `options` does not replace. */
function node({ send }: FakeClient, options: Partial<CommandNodeOptions> = {}): LockNode {
  return commandNode({ name: `node-${++nodes}`, send, timeoutMs: 50, ...options });
}

function rejected(make: () => unknown): Promise<never> {
  return Promise.reject(make());
}
