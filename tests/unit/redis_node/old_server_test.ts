import { assertEquals, assertInstanceOf } from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { Bench, FencedBallot, WaitingBench } from "../../support/redis_node_bench.ts";

/** The replies of Redis 3.2 and 2.8 to a script that reads the clock and then writes. */
const REFUSALS = [
  "ERR Error running script (call to f_ef9652faca7c0fa35799c0e3911ab250ec991f42): @user_script:8: " +
  "@user_script: 8: Write commands not allowed after non deterministic commands. Call " +
  "redis.replicate_commands() at the start of your script in order to switch to single commands " +
  "replication mode. ",
  "ERR Error running script (call to f_ef9652faca7c0fa35799c0e3911ab250ec991f42): @user_script:8: " +
  "@user_script: 8: Write commands not allowed after non deterministic commands ",
];
const EXPLANATION = "ERR the server is too old: fencing tokens, the restart guard and waiting " +
  "without polling need Redis 5 or newer";

for (const refusal of REFUSALS) {
  const { length } = refusal;

  Deno.test(`RedisNode says that a server is too old for fencing tokens, for a refusal of ${length} characters`, async () => {
    const bench = new Bench();
    await bench.open();
    const request = bench.ask("acquire", new FencedBallot(), 3);
    await runMicrotasks();
    await bench.answer(`-${refusal}\r\n`);
    assertEquals(request.answers, [["failed", 3, EXPLANATION]]);
    assertInstanceOf(request.errors[0], ReplyError);
    assertEquals([request.errors[0].prefix, request.errors[0].permanent], ["ERR", true]);
    await bench.close();
  });

  Deno.test(`RedisNode says that a server is too old for the restart guard, for a refusal of ${length} characters`, async () => {
    const bench = new Bench();
    const requests = [0, 1].map(() => Object.assign(new FakeRequest(), { guardMs: 60_000 }));
    const noMarker = "$-1\r\n*2\r\n$2\r\n99\r\n$1\r\n0\r\n";
    bench.ask("acquire", requests[0], 3);
    await runMicrotasks();
    await bench.answer(`$24\r\nuptime_in_seconds:999999\r\n+OK\r\n${noMarker}`);
    assertEquals(requests[0].answers.map(([outcome]) => outcome), ["quarantined"]);
    bench.ask("acquire", requests[1], 3);
    await runMicrotasks();
    await bench.answer(`-${refusal}\r\n+OK\r\n${noMarker}`);
    assertEquals(requests[1].answers, [["failed", 3, EXPLANATION]]);
    await bench.close();
  });

  Deno.test(`RedisNode says that a server is too old for waiting, for a refusal of ${length} characters`, async () => {
    const bench = await new WaitingBench().listening();
    await bench.join();
    await bench.reply(`-${refusal}\r\n`);
    assertEquals(bench.told, [["refused", 3, EXPLANATION]]);
    await bench.reply("$-1\r\n");
    await bench.close();
  });
}
