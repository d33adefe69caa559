import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { QuorumError } from "../../src/errors.ts";
import { ConnectionError } from "../../src/redis/errors.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { connectionEvents, create, setCommand } from "../support/faked_redlock.ts";
import { FakedSystemTime } from "../support/faked_system_time.ts";
import { LOST, NAME } from "../support/stream_bench.ts";

// Connecting

Deno.test("createRedlock() connects to nobody", async () => {
  const { redlock, network, events } = create(["redis://h", "rediss://i", "redis+unix:///r"]);
  await runMicrotasks();
  assertEquals([network.targets, events], [[], []]);
  await redlock.close();
});

Deno.test("createRedlock() whose client is closed unused connects to nobody", async () => {
  const { redlock, network, events } = create();
  await redlock.close();
  const error = await assertRejects(() => redlock.acquire("a"));
  assertEquals(
    (error as Error).message,
    'Cannot acquire lock "a": the lock client is closed',
  );
  assertEquals([network.targets, events], [[], []]);
});

Deno.test("createRedlock() does not mind servers that cannot be reached, until they are asked", async () => {
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

// Events

Deno.test("createRedlock() tells of a connection, once it is made, and of its loss, by the node's name", async () => {
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

Deno.test("createRedlock() tells of an outage once, however long it is, and of its end", async () => {
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
  assertEquals(connectionEvents(events), [
    ["node-connected", NAME],
    ["node-disconnected", NAME, LOST],
    ["node-connected", NAME],
  ]);
  network.last.end();
  await time.advance(0);
  assertEquals(connectionEvents(events).slice(3), [["node-disconnected", NAME, LOST]]);
  await redlock.close();
});

Deno.test("createRedlock() tells once of a server that never could be reached, each node for itself", async () => {
  using time = new FakedSystemTime();
  const { redlock, network, events } = create(["redis://h", "redis://i"], { waitMs: 0 });
  network.mode = "refuse";
  await assertRejects(() => redlock.acquire("a"), QuorumError);
  await time.advance(1_000);
  assert(network.targets.length > 4);
  assertEquals(
    connectionEvents(events),
    ["redis://h:6379", "redis://i:6379"].map((node) => {
      return [
        "node-disconnected",
        node,
        `Connection to ${node} could not be made: connection refused`,
      ];
    }),
  );
  await redlock.close();
});

Deno.test("createRedlock() tells of no loss when it is closed", async () => {
  const { redlock, network, events } = create();
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  network.last.feed("$-1\r\n");
  await trying;
  await redlock.close();
  assertEquals(network.last.closed, true);
  assertEquals(connectionEvents(events), [["node-connected", NAME]]);
});

Deno.test("createRedlock() is not disturbed by a listener that throws", async () => {
  const { redlock, network } = create(["redis://h"], {
    onEvent: () => {
      throw new Error("no");
    },
  });
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  assertEquals(network.last.written, setCommand(network.last, "a", "30000"));
  network.last.feed("$-1\r\n");
  assertEquals(await trying, undefined);
  network.last.end();
  await runMicrotasks();
  await redlock.close();
});
