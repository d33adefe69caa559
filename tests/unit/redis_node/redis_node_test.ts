import { assertEquals } from "@std/assert";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { test } from "../../support/redis_node_bench.ts";
import { LOST, NAME } from "../../support/stream_bench.ts";

test("RedisNode has its address without credentials for a name, and connects when it is first asked", async (bench) => {
  bench.use({}, "redis://user:hunter2@h/3");
  assertEquals(bench.node.name, `${NAME}/3`);
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(bench.network.targets, [{ kind: "tcp", hostname: "h", port: 6379 }]);
});

test("RedisNode.readyAtMs is when its first attempt to connect ended", async (bench) => {
  bench.network.mode = "wait";
  bench.ask("acquire");
  assertEquals(bench.node.readyAtMs, Infinity);
  await bench.advance(70);
  const readyAtMs = bench.clock.monotonicMs();
  bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(bench.node.readyAtMs, readyAtMs);
});

test("RedisNode reports to its observer whether its server replies", async (bench) => {
  await bench.send("acquire");
  assertEquals(bench.events, []); // nobody knows yet who has taken the connection
  await bench.answer("+OK\r\n");
  await bench.hangUp();
  for (let times = 0; times < 3; times++) { // a proxy without a server
    await bench.nextStream();
    await bench.hangUp();
  }
  await bench.reconnect();
  assertEquals(bench.events, [`${NAME} connected`, `${NAME}: ${LOST}`, `${NAME} connected`]);
});
