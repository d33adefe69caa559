import { assert, assertEquals, assertRejects } from "@std/assert";
import { QuorumError } from "../../src/errors.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { connectionEvents, create } from "../support/faked_redlock.ts";
import { startFakeClock } from "../../src/testing/mod.ts";
import { LOST, NAME } from "../support/stream_bench.ts";

Deno.test("createRedlock() reports an outage once, however long it is, and its end, but no loss when it is closed", async () => {
  using clock = startFakeClock();
  const { redlock, network, events } = create();
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  network.last.feed("$-1\r\n");
  await trying;
  network.mode = "refuse";
  network.last.end();
  await clock.tick(3_000);
  assert(network.targets.length > 4);
  const error = await assertRejects(() => redlock.tryAcquire("a"), QuorumError);
  assertEquals(error.votes[0].outcome, "failed");
  network.mode = "accept";
  while (network.transports.length < 2 || network.last.written === "") await clock.tick(50);
  assertEquals(connectionEvents(events).length, 2); // nobody has answered yet
  network.last.feed(":0\r\n");
  await clock.tick(0);
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
  using clock = startFakeClock();
  const { redlock, network, events } = create(["redis://h", "redis://i"], { waitMs: 0 });
  network.mode = "refuse";
  await assertRejects(() => redlock.acquire("a"), QuorumError);
  await clock.tick(1_000);
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
