/** Nodes in memory over TCP, and what can be done to them, seen from clients. */
import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import {
  connect,
  ConnectionError,
  type RedisClient,
  type Reply,
  ReplyError,
} from "../../src/redis/mod.ts";
import { startFakeClock, startNodes, type TestNode } from "../../src/testing/mod.ts";
import { makeFolder } from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";
import { findRuntimes, type FoundRuntime } from "../support/programs.ts";
import { testOf } from "../support/test_of.ts";

const test = testOf(() => startNodes(1));

/** A promise and whether it has settled. */
function watched(promise: Promise<Reply>) {
  const watch = { promise, settled: false };
  promise.then(() => watch.settled = true, () => watch.settled = true);
  return watch;
}

/** Some round trips to another node of this process: what was to come has come by then. */
async function settle(client: RedisClient): Promise<void> {
  for (let times = 0; times < 5; times++) await client.send(["PING"]);
}

function urlOf(node: TestNode): string {
  return `redis://127.0.0.1:${node.port}`;
}

Deno.test("startNodes() starts nodes that share nothing and ask for the password", async () => {
  await using nodes = await startNodes(2, { password: "s/cret" });
  await using one = await connect(nodes.addresses[0]);
  await using other = await connect(nodes.addresses[1]);
  await one.send(["SET", "a", "1"]);
  assertEquals([await one.send(["GET", "a"]), await other.send(["GET", "a"])], ["1", null]);
  await assertRejects(
    () => connect(urlOf(nodes[0])),
    ReplyError,
    "NOAUTH Authentication required.",
  );
});

test("TestNode.crash() resets connections and refuses new ones", async (nodes) => {
  const { port } = nodes[0];
  using stream = await Deno.connect({ hostname: "127.0.0.1", port });
  const reading = stream.read(new Uint8Array(8));
  await Promise.all([assertRejects(() => reading, Deno.errors.ConnectionReset), nodes[0].crash()]);
  await nodes[0].crash();
  await assertRejects(
    () => Deno.connect({ hostname: "127.0.0.1", port }),
    Deno.errors.ConnectionRefused,
  );
});

for (const [keepData, left] of [[undefined, null], [false, null], [true, "1"]] as const) {
  test(`TestNode.restart({ keepData: ${keepData} }) comes back on the same port ${left ? "with" : "without"} its keys`, async (nodes) => {
    const [node] = nodes;
    let runId: unknown;
    {
      await using client = await connect(node.address);
      await client.send(["SET", "a", "1", "PX", 60_000]);
      runId = /run_id:\w+/u.exec(String(await client.send(["INFO"])))?.[0];
    }
    await node.crash();
    await node.restart({ keepData });
    await using client = await connect(node.address);
    assertEquals(await client.send(["GET", "a"]), left);
    const after = /run_id:\w+/u.exec(String(await client.send(["INFO"])))?.[0];
    assert(after !== undefined && after !== runId);
  });
}

test("TestNode.restart() of a node that hangs crashes it first, and it answers again", async (nodes) => {
  await using client = await connect(nodes[0].address);
  nodes[0].hang();
  const waiting = client.send(["PING"]);
  await Promise.all([assertRejects(() => waiting, ConnectionError), nodes[0].restart()]);
  await using other = await connect(nodes[0].address);
  assertEquals(await other.send(["PING"]), "PONG");
});

test("TestNode.restart() rejects where another program has taken the port", async (nodes) => {
  await nodes[0].crash();
  using _other = Deno.listen({ hostname: "127.0.0.1", port: nodes[0].port });
  const error = await assertRejects(() => nodes[0].restart(), Error);
  assertEquals((error as { code?: string }).code, "EADDRINUSE");
});

Deno.test("TestNode.hang() takes connections and answers nothing until resume(), then in order", async () => {
  await using nodes = await startNodes(2);
  await using other = await connect(nodes[1].address);
  await using first = await connect(nodes[0].address);
  await using second = await connect(nodes[0].address);
  nodes[0].hang();
  using late = await Deno.connect({ hostname: "127.0.0.1", port: nodes[0].port });
  await late.write(new TextEncoder().encode("*1\r\n$4\r\nPING\r\n"));
  const calls = [];
  for (const client of [first, second, first]) {
    calls.push(watched(client.send(["INCR", "count"])));
    await settle(other);
  }
  assertEquals(calls.map(({ settled }) => settled), [false, false, false]);
  nodes[0].resume();
  assertEquals(await Promise.all(calls.map(({ promise }) => promise)), [1, 2, 3]);
  const buffer = new Uint8Array(16);
  assertEquals(await late.read(buffer), 7);
});

for (
  const [fault, arrives] of [["hang", true], ["partition", false]] as const
) {
  Deno.test(`TestNode.${fault}() ${arrives ? "executes" : "never executes"} what a client sent before it gave up`, async () => {
    await using nodes = await startNodes(2);
    await using other = await connect(nodes[1].address);
    await using watcher = await connect(nodes[0].address);
    nodes[0][fault]();
    const stream = await Deno.connect({ hostname: "127.0.0.1", port: nodes[0].port });
    await stream.write(new TextEncoder().encode("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"));
    await settle(other);
    stream.close();
    await settle(other);
    nodes[0].resume();
    assertEquals(await watcher.send(["GET", "a"]), arrives ? "1" : null);
  });
}

Deno.test("TestNode.partition() keeps connections, and what was sent arrives after resume()", async () => {
  await using nodes = await startNodes(2);
  await using other = await connect(nodes[1].address);
  await using client = await connect(nodes[0].address);
  await client.send(["SET", "a", "1"]);
  nodes[0].partition();
  const call = watched(client.send(["INCR", "a"]));
  await settle(other);
  assertEquals(call.settled, false);
  nodes[0].resume();
  assertEquals(await call.promise, 2);
});

Deno.test("startNodes() is disposed of while commands wait on slow and hung nodes", async () => {
  const nodes = await startNodes(2);
  const clients = await Promise.all(nodes.addresses.map((address) => connect(address)));
  nodes[0].slow(60_000);
  nodes[1].hang();
  const calls = clients.map((client) => client.send(["PING"]));
  await Promise.all([
    nodes[Symbol.asyncDispose](),
    ...calls.map((call) => assertRejects(() => call, ConnectionError)),
  ]);
  await Promise.all(clients.map((client) => client.close()));
});

test("TestNode.slow() delays what arrives from now on, and leaves what waits its old delay", async (nodes) => {
  await using client = await connect(nodes[0].address);
  using clock = startFakeClock();
  nodes[0].slow(100);
  const first = watched(client.send(["INCR", "count"]));
  await clock.tick(60);
  nodes[0].slow(0);
  const second = watched(client.send(["INCR", "count"])); // behind the first
  await clock.tick(39);
  assertEquals([first.settled, second.settled], [false, false]);
  await clock.tick(1);
  assertEquals(await Promise.all([first.promise, second.promise]), [1, 2]);
});

test("TestNode.resume() counts for slow() the time that a node hung", async (nodes) => {
  await using client = await connect(nodes[0].address);
  using clock = startFakeClock();
  nodes[0].slow(100);
  nodes[0].hang();
  const call = watched(client.send(["PING"]));
  await clock.tick(100);
  assertEquals(call.settled, false);
  nodes[0].resume();
  await clock.tick(0);
  assertEquals(call.settled, true);
});

test("TestNode.skewClock() sets the clock by which keys expire, each time from the right time", async (nodes) => {
  await using client = await connect(nodes[0].address);
  const offsetS = async () => {
    const [seconds] = await client.send(["TIME"]) as string[];
    return Number(seconds) - Date.now() / 1000;
  };
  await client.send(["SET", "a", "1", "PX", 60_000]);
  nodes[0].skewClock(-30_000);
  assertLess(Math.abs(await offsetS() + 30), 2);
  assertLess(Math.abs(Number(await client.send(["PTTL", "a"])) - 90_000), 2_000);
  nodes[0].skewClock(61_000);
  assertLess(Math.abs(await offsetS() - 61), 2);
  assertEquals(await client.send(["GET", "a"]), null);
});

test("a node says what it can't do while it is down, or once the nodes were disposed of", async (nodes) => {
  const [node] = nodes;
  await node.crash();
  for (const action of ["hang", "partition", "resume"] as const) {
    const error = assertThrows(() => node[action](), Error);
    assertEquals(
      error.message,
      `Cannot ${action} node ${node.port} as it is not running: restart it first`,
    );
  }
  await nodes.close();
  const message = `Cannot restart node ${node.port} as it was closed`;
  assertEquals((await assertRejects(() => node.restart(), Error)).message, message);
});

test("TestNodes and TestNode refuse numbers that are out of range", (nodes) => {
  const [delay, index] = ["a number from 0 to 2147483647", "an integer from 0 to 0"];
  for (
    const [call, message, value] of [
      ...[1, -1, 0.5].map((value) => {
        return [() => nodes.node(value), `return node as 'index' must be ${index}`, value] as const;
      }),
      ...[-1, NaN, 2 ** 31].map((value) => {
        return [
          () => nodes[0].slow(value),
          `slow node as 'delayMs' must be ${delay}`,
          value,
        ] as const;
      }),
      [() => nodes[0].skewClock(0.5), "skew clock as 'aheadMs' must be a safe integer", 0.5],
    ] as const
  ) {
    const error = assertThrows(call, RangeError);
    assertEquals(error.message, `Cannot ${message}: current value is ${value}`);
  }
});

const source = (path: string) => JSON.stringify(new URL(`../../${path}`, import.meta.url).href);

/** Every fault once, in whatever runtime; prints what came of it. */
const PROGRAM = `
import { connect } from ${source("src/redis/mod.ts")};
import { startNodes } from ${source("src/testing/mod.ts")};
const nodes = await startNodes(1);
const node = nodes.node(0);
let client = await connect(node.address);
const seen = [await client.send(["SET", "a", "1"])];
node.hang();
const hung = client.send(["GET", "a"]);
node.resume();
seen.push(await hung);
node.partition();
const lost = client.send(["PING"]).catch((error) => error.code);
await node.crash();
seen.push(await lost, await connect(node.address).catch((error) => error.code));
await node.restart({ keepData: true });
client = await connect(node.address);
node.slow(20);
seen.push(await client.send(["GET", "a"]));
node.skewClock(5_000);
await client.send(["SET", "b", "1", "PX", 1]);
node.skewClock(6_000);
seen.push(await client.send(["GET", "b"]));
node.slow(30_000);
const slow = client.send(["PING"]).catch((error) => error.code);
await nodes[Symbol.asyncDispose]();
seen.push(await slow);
await client.close();
console.log(JSON.stringify(seen));
`;

for (const runtime of await findRuntimes()) {
  const { name, missing } = runtime;
  Deno.test({
    name: `startNodes() does the same in ${name}${missing ? ` (skipped: ${missing})` : ""}`,
    ignore: missing !== undefined,
    fn: () => testRuntime(runtime),
  });
}

async function testRuntime({ name, path }: FoundRuntime): Promise<void> {
  await using folder = await makeFolder();
  const file = `${folder.path}/program.mjs`;
  await Deno.writeTextFile(file, PROGRAM);
  const flags = name === "deno" ? ["run", "--no-prompt", "--allow-net=127.0.0.1"] : [];
  const { stdout, stderr } = await plainCommand(path!, { args: [...flags, file] }).output();
  const text = new TextDecoder();
  const seen = ["OK", "1", "CONNECTION", "CONNECTION", "1", null, "CONNECTION"];
  assertEquals(text.decode(stdout), `${JSON.stringify(seen)}\n`, text.decode(stderr));
}
