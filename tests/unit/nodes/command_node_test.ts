import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Redlock } from "../../../mod.ts";
import { check } from "../../../src/operate/mod.ts";
import { commandNode, type CommandNodeOptions } from "../../../src/nodes/mod.ts";
import { publishedNode } from "../../../src/nodes/published_node.ts";
import {
  outcomeOf,
  pause,
  sentBy,
  test,
  withCommandNode,
} from "../../support/command_node_bench.ts";
import { FakeClient } from "../../support/fake_client.ts";
import { FakeRequest } from "../../support/fake_request.ts";

const encoder = new TextEncoder();

Deno.test("commandNode() locks, extends, inspects, releases and counts through one function", async () => {
  await withCommandNode({ timeoutMs: undefined }, async (_client, node) => {
    const redlock = new Redlock([{ ...publishedNode(node) }], { fencing: true });
    const lock = await redlock.acquire("invoice:42");
    assert(lock.fencingToken > 0);
    await lock.extend();
    const { held, remainingMs } = await redlock.inspect("invoice:42");
    assert(held && remainingMs > 0);
    assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
    assertEquals(await lock.release(), true);
    const next = await redlock.acquire(["invoice:42", "invoice:43"]);
    assert(next.fencingToken > lock.fencingToken);
    await next.release();
    const [report] = (await check(redlock)).nodes;
    assertEquals([report.reachable, report.role, report.refused], [true, "master", undefined]);
    assertEquals(node.subscribe, undefined);
    await redlock.close();
  });
});

test("commandNode() shortens a TTL on request, also if a node of one's own passes the request on", async ({ node }) => {
  const published = publishedNode(node);
  const lock = { keys: ["a"], value: "v" };
  assertEquals(await published.acquire({ ...lock, ttlMs: 60_000 }), "granted");
  assertEquals(await published.extend({ ...lock, ttlMs: 50, shortens: true }), "granted");
  assert((await published.inspect("a"))!.remainingMs <= 50);
});

Deno.test("commandNode() sends no acquisition again behind what releases it, or shortens its TTL", async () => {
  for (const ends of ["release", "extend"] as const) {
    await withCommandNode({}, async (client, node) => {
      const published = publishedNode(node);
      const lock = { keys: ["a", "b"], value: "v", ttlMs: 60_000 };
      await published.acquire({ ...lock, value: "before" });
      for (const words of [["FLUSHALL"], ["SCRIPT", "FLUSH"]]) await client.send(words);
      const acquiring = assertRejects(() => published.acquire(lock), Error, "NOSCRIPT");
      await published[ends]({ ...lock, ttlMs: 50, shortens: ends === "extend" });
      await acquiring;
      assertEquals(await published.inspect("a"), undefined);
    });
  }
});

Deno.test("commandNode() gives each client arguments of its own, which it may change", async () => {
  const clients = [await FakeClient.open(), await FakeClient.open(), await FakeClient.open()];
  const nodes = clients.map((client, index) =>
    commandNode({
      name: `node-${index}`,
      send: (args) => client.send([args.shift()!, ...args.splice(0)]),
      timeoutMs: 1_000,
    })
  );
  const redlock = new Redlock(nodes);
  const lock = await redlock.acquire("invoice:42");
  assert(await lock.extend().then(() => true));
  assertEquals(await lock.release(), true);
  const [first, ...others] = clients.map(({ sent }) => sent.map(([name, key]) => `${name} ${key}`));
  for (const sent of others) assertEquals(sent, first);
  await redlock.close();
  for (const client of clients) await client[Symbol.asyncDispose]();
});

test("commandNode() sends a command about a key only when the one before was answered", async ({ client, node }) => {
  client.fate = () => ({ after: pause(10) });
  for (const value of ["v", "w", "x"]) { // each while the last one is released
    const [acquisition] = (["acquire", "release"] as const).map((method) => {
      const request = new FakeRequest("k", { value });
      node.ask(method, request, 0);
      return request;
    });
    assertEquals(await outcomeOf(acquisition), "granted");
  }
  await pause(1_000);
  assertEquals([client.sent.length, client.pendingMax], [6, 1]);
});

test("commandNode() sends commands about different keys side by side, also once it was down", async ({ client, node }) => {
  for (const question of ["acquire", "release"] as const) {
    const requests = ["k", "l", "m"].map((key) => new FakeRequest(key));
    client.pendingMax = 0;
    for (const request of requests) node.ask(question, request, 0);
    for (const request of requests) assertEquals(await outcomeOf(request), "granted");
    assertEquals(client.pendingMax, 3);
    client.fate = () => ({ times: 0, error: new Error("broken") });
    for (const key of ["k", "l"]) await node.inspect!(key).catch(() => {});
    client.fate = () => ({});
    await pause(300); // until it is back
  }
});

test("commandNode() has several keys wait for the last command about each of them", async ({ client, node }) => {
  const [one, both, two] = [["k"], ["k", "l"], ["l"]].map((keys) => new FakeRequest(keys));
  for (const request of [one, both, two]) node.ask("acquire", request, 0);
  const outcomes = [await outcomeOf(one), await outcomeOf(both), await outcomeOf(two)];
  assertEquals(outcomes, ["granted", "denied", "granted"]);
  assertEquals(client.pendingMax, 1);
});

Deno.test("commandNode() gives a pipeline in one call what waits for each other, of several ticks", async () => {
  const lengths: number[] = [];
  const options = ({ send }: FakeClient): Partial<CommandNodeOptions> => ({
    pipeline(commands, signal) {
      lengths.push(commands.length);
      return sentBy("pipeline", send).pipeline!(commands, signal);
    },
  });
  await withCommandNode(options, async (_client, node) => {
    const requests = ["v", "v", "w"].map((value) => new FakeRequest(["k", "l"], { value }));
    for (const [index, request] of requests.entries()) {
      node.ask(index === 1 ? "release" : "acquire", request, 0);
      await Promise.resolve().then(() => {}); // a tick of its own
    }
    for (const request of requests) assertEquals(await outcomeOf(request), "granted");
    assertEquals(lengths, [2]);
  });
});

Deno.test("commandNode() has several keys wait for each command about them also if those are in different calls of a pipeline", async () => {
  await withCommandNode(({ send }) => sentBy("pipeline", send), async (client, node) => {
    const gates = new Map(["k", "l"].map((key) => [key, Promise.withResolvers<void>()]));
    client.fate = ([, key]) => ({ after: gates.get(key)?.promise });
    const requests = [["k"], ["l"], ["k", "l"]].map((keys) => new FakeRequest(keys));
    node.ask("acquire", requests[0], 0);
    await Promise.resolve().then(() => {}); // a tick of its own
    for (const request of requests.slice(1)) node.ask("acquire", request, 0);
    for (const [index, key] of ["k", "l"].entries()) {
      await pause(5);
      assertEquals(client.sent.length, 2);
      gates.get(key)!.resolve();
      assertEquals(await outcomeOf(requests[index]), "granted");
    }
    assertEquals(await outcomeOf(requests[2]), "denied");
  });
});

Deno.test("commandNode() extends a lock behind as many releases as a client has under way, and behind 16 384 undoes only", async () => {
  await withCommandNode({ timeoutMs: undefined }, async (_client, node) => {
    const [lock, extension, refused] = Array.from({ length: 3 }, () => new FakeRequest("lock"));
    const undo = new FakeRequest("lock", { value: "w" });
    undo.set = true;
    node.ask("acquire", lock, 0);
    for (let index = 0; index < 4_096; index++) node.ask("release", new FakeRequest(`${index}`), 0);
    node.ask("extend", extension, 0);
    for (let index = 4_098; index < 16_384; index++) node.inspect!("k").catch(() => {});
    node.ask("extend", refused, 0);
    node.ask("release", undo, 0);
    assertEquals(await outcomeOf(extension), "granted");
    assertEquals([refused.unsent, await outcomeOf(undo)], [true, "denied"]);
  });
});

for (const way of ["send", "pipeline"] as const) {
  Deno.test(`commandNode() does not ${way} a cancelled acquisition that still waits its turn`, async () => {
    await withCommandNode(({ send }) => sentBy(way, send), async (client, node) => {
      const [first, second, third] = ["v", "w", "x"].map((value) =>
        new FakeRequest("k", { value })
      );
      for (const request of [first, second, third]) node.ask("acquire", request, 0);
      second.wanted = false;
      assertEquals(await outcomeOf(first), "granted");
      assertEquals(await outcomeOf(second), "failed");
      assertEquals(await outcomeOf(third), "denied");
      assertEquals([client.named("SET").length, second.unsent], [2, true]);
    });
  });
}

Deno.test("commandNode() fails commands if pipeline resolves to another number of replies, or rejects", async () => {
  const rule = "'pipeline' must resolve to one reply for each command";
  const cases: [() => unknown, string][] = [
    [() => ["OK"], rule],
    [() => undefined, rule],
    [() => Promise.reject(new Error("NOAUTH died")), "NOAUTH died"], // no reply to each of them
  ];
  for (const [pipeline, why] of cases) {
    await withCommandNode({ pipeline: pipeline as () => Promise<[]> }, async (_client, node) => {
      const requests = ["k", "l"].map((key) => new FakeRequest(key));
      for (const request of requests) node.ask("acquire", request, 0);
      for (const request of requests) await outcomeOf(request);
      assertEquals(requests[1].errors[0].message, `Cannot get reply from a: ${why}`);
    });
  }
});

test("commandNode() shows no argument in the error of a vote", async ({ client, node }) => {
  client.fate = (args) => ({ error: new Error(`socket died sending ${args.join(" ")}`) });
  const request = new FakeRequest("some-secret-key", { value: "0123456789abcdef" });
  node.ask("acquire", request, 0);
  await outcomeOf(request);
  assertEquals(
    request.errors[0].message,
    "Cannot get reply from a: socket died sending SET *** *** NX PX 1000",
  );
  const { name, message } = request.errors[0].cause as Error;
  assertEquals([name, message], ["Error", "socket died sending SET *** *** NX PX 1000"]);
});

Deno.test("commandNode() shows no argument of any command in the cause of a vote", async () => {
  const secrets = ["secret-key", "other-key", "0123456789abcdef"];
  type Commands = readonly (readonly string[])[];
  const died = (more: object) => Object.assign(new Error("died"), { code: "DIED" }, more);
  const errors: ((commands: Commands) => Error)[] = [
    (commands) => died({ message: `died sending ${commands}` }),
    ([first]) => died({ command: { args: first } }),
    (commands) => died({ bytes: encoder.encode(commands.join()) }),
    (commands) => died({ commands: new Map(commands.entries()) }),
    (commands) => died({ cause: new Error(commands.join()) }),
    (commands) => died({ errors: [new Error(commands.join())] }),
  ];
  for (const errorOf of errors) {
    const pipeline = (commands: string[][]) => Promise.reject(errorOf(commands));
    await withCommandNode({ pipeline }, async (_client, node) => {
      const requests = secrets.slice(0, 2).map((key) =>
        new FakeRequest(key, { value: secrets[2] })
      );
      for (const request of requests) node.ask("acquire", request, 0);
      for (const request of requests) {
        await outcomeOf(request);
        const [error] = request.errors;
        const text = Deno.inspect(error, { depth: 10 });
        for (const secret of secrets) assert(!text.includes(secret), text);
        assertEquals((error.cause as { code?: string }).code, "DIED");
      }
    });
  }
});

Deno.test("commandNode() reports a client that returns nothing as a failed vote", async () => {
  await withCommandNode({ send: () => Promise.resolve(undefined) }, async (_client, node) => {
    const message = "Cannot get reply from a: the client returned undefined";
    const request = new FakeRequest();
    node.ask("acquire", request, 0);
    assertEquals([await outcomeOf(request), request.errors[0].message], ["failed", message]);
    await assertRejects(() => node.inspect("k"), Error, message);
  });
});

Deno.test("commandNode() rejects readers that it cannot read, and shows none of the reply", async () => {
  const sendBy = (client: FakeClient) => async (args: string[]) => {
    const reply = await client.send(args);
    if (args[0] !== "ZRANGE") return reply;
    const [key, value] = reply as string[];
    return [{ key, value }];
  };
  await withCommandNode((client) => ({ send: sendBy(client) }), async (_client, node) => {
    const request = new FakeRequest("k", { mode: "shared" });
    node.ask("acquire", request, 0);
    assertEquals(await outcomeOf(request), "granted");
    await assertRejects(
      () => node.inspect("k"),
      Error,
      "Cannot get reply from a: the client returned no reply to ZRANGE in a known form",
    );
  });
});

Deno.test("commandNode() reads in what subscribe rejects with that the server refuses", async () => {
  const message = "NOPERM no permission to use 'subscribe'";
  const subscribe = () => Promise.reject({ message });
  await withCommandNode({ subscribe }, async (_client, node) => {
    const refused = Promise.withResolvers<Error>();
    const nothing = () => {};
    const others = { onSubscribed: nothing, onUnsubscribed: nothing, onQueueMessage: nothing };
    const onRefused = (_nodeIndex: number, error: Error) => refused.resolve(error);
    node.subscribe!({ id: "me", ...others, onRefused }, 0);
    assertEquals((await refused.promise).message, message);
  });
});

Deno.test("commandNode() rejects options that make no sense", () => {
  const send = () => Promise.resolve();
  const cases: [object, string][] = [
    [{ name: "", send }, "Cannot create node as 'name' must be a non-empty string"],
    [{ name: "a" }, "'send' must be a function: current type is 'undefined'"],
    [{ name: "a", send, pipeline: 1 }, "'pipeline' must be a function: current type is 'number'"],
    [{ name: "a", send, subscribe: 1 }, "'subscribe' must be a function"],
    [{ name: "a", send, resends: 1 }, "'resends' must be a boolean"],
    [{ name: "a", send, timeoutMs: 0 }, "'timeoutMs' must be a finite number greater than 0"],
    [{ name: "a", send, retries: 0 }, "option 'retries' is unknown"],
  ];
  for (const [options, message] of cases) {
    assertThrows(() => commandNode(options as CommandNodeOptions), Error, message);
  }
});
