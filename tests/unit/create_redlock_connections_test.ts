import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { QuorumError } from "../../src/errors.ts";
import { ConnectionError } from "../../src/redis/errors.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { connectionEvents, create } from "../support/faked_redlock.ts";
import { FakedSystemTime } from "../support/faked_system_time.ts";
import { LOST, NAME } from "../support/stream_bench.ts";

Deno.test("createRedlock() connects to nobody before a call, nor if it is closed unused", async () => {
  const { redlock, network, events } = create(["redis://h", "rediss://i", "redis+unix:///r"]);
  await runMicrotasks();
  await redlock.close();
  await assertRejects(() => redlock.acquire("a"));
  assertEquals([network.targets, events], [[], []]);
});

Deno.test("createRedlock() has servers that cannot be reached fail a call, and shows no password", async () => {
  const { redlock, network } = create(["redis://user:hunter2@h"], { waitMs: 0 });
  network.mode = "refuse";
  const error = await assertRejects(() => redlock.acquire("a"), QuorumError);
  const reason = `Connection to ${NAME} could not be made: connection refused`;
  assertEquals(error.votes.map(({ node, outcome }) => [node, outcome]), [[NAME, "failed"]]);
  assertInstanceOf(error.votes[0].error, ConnectionError);
  assertEquals(error.votes[0].error.message, reason);
  assertEquals((error.cause as Error).message, `${NAME}: ${reason}`);
  assertEquals(Deno.inspect(error, { depth: 10 }).includes("hunter2"), false);
  await redlock.close();
});

Deno.test("createRedlock() reports a connection once it is made, and its loss, by the node's name", async () => {
  const { redlock, network, events } = create(["redis://user:hunter2@h/3"]);
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  assertEquals(connectionEvents(events), []); // logging in
  network.last.feed("+OK\r\n+OK\r\n");
  await runMicrotasks();
  assertEquals(connectionEvents(events), [["node-connected", "redis://h:6379/3"]]);
  network.last.feed("$-1\r\n");
  await trying;
  network.last.end();
  await runMicrotasks();
  const [connected, disconnected] = events.filter(({ type }) => type.startsWith("node-"));
  assertEquals(Object.keys(connected), ["type", "node"]);
  assert(disconnected.type === "node-disconnected");
  assertEquals(Object.keys(disconnected), ["type", "node", "error"]);
  assertInstanceOf(disconnected.error, ConnectionError);
  assertEquals(
    disconnected.error.message,
    "Connection to redis://h:6379/3 was lost: the server closed the connection",
  );
  assertEquals(Deno.inspect(events, { depth: 10 }).includes("hunter2"), false);
  await redlock.close();
});

Deno.test("createRedlock() reports an outage once, however long it is, and its end, but no loss when it is closed", async () => {
  using time = new FakedSystemTime();
  const { redlock, network, events } = create();
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  network.last.feed("$-1\r\n");
  await trying;
  network.mode = "refuse";
  network.last.end();
  await time.advance(3_000);
  assert(network.targets.length > 4);
  const error = await assertRejects(() => redlock.tryAcquire("a"), QuorumError);
  assertEquals(error.votes[0].outcome, "failed");
  network.mode = "accept";
  while (network.transports.length < 2 || network.last.written === "") await time.advance(50);
  assertEquals(connectionEvents(events).length, 2); // nobody has answered yet
  network.last.feed(":0\r\n");
  await time.advance(0);
  const reported = [
    ["node-connected", NAME],
    ["node-disconnected", NAME, LOST],
    ["node-connected", NAME],
  ];
  assertEquals(connectionEvents(events), reported);
  await redlock.close();
  assertEquals([network.last.closed, connectionEvents(events)], [true, reported]);
});

Deno.test("createRedlock() reports once a server that never could be reached, each node for itself", async () => {
  using time = new FakedSystemTime();
  const { redlock, network, events } = create(["redis://h", "redis://i"], { waitMs: 0 });
  network.mode = "refuse";
  await assertRejects(() => redlock.acquire("a"), QuorumError);
  await time.advance(1_000);
  assert(network.targets.length > 4);
  const reason = "could not be made: connection refused";
  assertEquals(
    connectionEvents(events),
    ["redis://h:6379", "redis://i:6379"].map((node) => {
      return ["node-disconnected", node, `Connection to ${node} ${reason}`];
    }),
  );
  await redlock.close();
});
