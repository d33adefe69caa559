/** The script that reads uptime and creation marker, on a real server. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { STATE_LUA } from "../../src/redis_node/restart_guard.ts";
import type { RedisServer } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(1);
/** By how much the clocks of test and server may be apart between two commands, in milliseconds. */
const STEP_MS = 1_000;

/** The marker's age and the server's clock, in milliseconds, uptime in seconds, and run id. */
async function stateOf(server: RedisServer): Promise<number[]> {
  return await server.command("EVAL", STATE_LUA, "1", "marker", "uptime") as number[];
}

test("the creation marker is set once, to the server's time, and does not expire", async (servers) => {
  const [server] = servers;
  const beforeMs = Date.now();
  const [noAge, nowMs, uptimeS, runId] = await stateOf(server);
  const marker = String(await server.command("GET", "marker"));
  assert(Math.abs(Number(marker) - beforeMs) < STEP_MS && /^\d{13}$/u.test(marker), marker);
  assertEquals([noAge, nowMs], [0, Number(marker)]);
  const info = String(await server.command("INFO", "server"));
  assertEquals(runId, Number(`0x${/run_id:(.{8})/u.exec(info)![1]}`));
  const laterS = Number(/uptime_in_seconds:(\d+)/u.exec(info)![1]);
  assert(uptimeS >= 0 && uptimeS <= laterS, `${uptimeS} s, then ${laterS} s`);
  assertEquals(await server.command("PTTL", "marker"), -1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const [ageMs, laterMs] = await stateOf(server);
  assertEquals([ageMs >= 5, ageMs], [true, laterMs - nowMs]);
  assertEquals(await server.command("GET", "marker"), marker);
});

test("what is no creation marker is not replaced by one", async (servers) => {
  const [server] = servers;
  const texts = ["", "abc", "-5", "0", "99999999999999", "9".repeat(400), "5 6", "1e3", "1.5"];
  for (const text of texts) {
    await server.command("SET", "marker", text, "PX", "60000");
    const [ageMs, nowMs] = await stateOf(server);
    assertEquals(ageMs, text === "0" ? nowMs : -1, text);
    assertEquals(await server.command("GET", "marker"), text);
    assert(Number(await server.command("PTTL", "marker")) > 0);
  }
  await server.command("DEL", "marker");
  await server.command("ZADD", "marker", "1", "x");
  await assertRejects(() => stateOf(server), Error, "WRONGTYPE");
  assertEquals(await server.command("ZCARD", "marker"), 1);
});
