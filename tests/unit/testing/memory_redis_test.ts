import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { commandBytes } from "../../support/command_bytes.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { MemoryRedis, startNodes } from "../../../src/testing/mod.ts";
import { systemClock } from "../../../src/time/clock.ts";
import { askOn as ask, MemoryBench } from "../../support/memory_bench.ts";
import { testOf } from "../../support/test_of.ts";

const encoder = new TextEncoder();
const latin1 = new TextDecoder("latin1");
const NEWS = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi";
const TARGET = { kind: "tcp", hostname: "node-1", port: 6379 } as const;

/** Requests as one piece of bytes. */
function requests(...commands: string[][]): Uint8Array {
  return encoder.encode(commands.map((words) => latin1.decode(commandBytes(words))).join(""));
}

const test = Object.assign(testOf(() => new MemoryRedis()), {
  session: testOf(() => new MemoryRedis().session()),
});

test.session("MemoryRedis.session() answers requests in their order, each once it is complete", (session) => {
  const bytes = requests(["SET", "a", "1"], ["GET", "a"]);
  assertEquals(latin1.decode(session.push(bytes)), "+OK\r\n$1\r\n1\r\n");
  const replies = Array.from(bytes, (byte) => latin1.decode(session.push(Uint8Array.of(byte))));
  assertEquals(replies.filter((reply) => reply !== ""), ["+OK\r\n", "$1\r\n1\r\n"]);
  assertEquals(replies.indexOf("+OK\r\n"), commandBytes(["SET", "a", "1"]).length - 1);
});

Deno.test("MemoryRedis.session() runs a script at one instant, so no key expires in the middle", () => {
  // Each reading of the clock takes a millisecond.
  let nowMs = 1_000;
  const clock = { ...systemClock, wallMs: () => nowMs++ };
  const session = new MemoryRedis({ clock }).session();
  for (let lifeMs = 1; lifeMs < 10; lifeMs++) {
    const key = `key-${lifeMs}`;
    ask(session, "SET", key, "mine", "PX", String(lifeMs));
    const extended = ask(session, "EVAL", EXTEND.source, "1", key, "mine", "1000");
    assertEquals(ask(session, "EXISTS", key), extended, `${lifeMs} ms`);
  }
});

test.session("MemoryRedis.session() refuses a script that the runtime has no room for, and goes on", (session) => {
  const sources = [
    `return #KEYS${"+1".repeat(30_000)}`,
    "local s = 'a*' for i = 1, 9 do s = s .. s end return ('x'):find(s)",
  ];
  for (const source of sources) {
    assertMatch(ask(session, "EVAL", source, 0), /^-ERR MemoryRedis cannot run this script: /u);
    assertEquals(ask(session, "EVAL", "return 1", 0), ":1");
  }
});

test.session("MemoryRedis.session() ends the connection after bytes that are not a request", (session) => {
  const reply = latin1.decode(session.push(encoder.encode("PING\r\n")));
  assertEquals(reply, "-ERR Protocol error: expected an array of bulk strings\r\n");
  assertEquals([session.ended, ask(session, "PING")], [true, ""]);
});

test.session("MemoryRedis.session() keeps every byte of a key and a value", (session) => {
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  ask(session, "SET", bytes, bytes);
  const reply = [...encoder.encode("$256\r\n"), ...bytes, ...encoder.encode("\r\n")];
  assertEquals([...session.push(commandBytes(["GET", bytes]))], reply);
});

Deno.test("MemoryRedis.session() reports the time of its clock, and drops a key a millisecond after its life", () => {
  const bench = new MemoryBench();
  bench.nowMs += 123.456;
  assertEquals(bench.ask("TIME"), "*2\r\n$10\r\n1700000000\r\n$6\r\n123456");
  bench.ask("SET", "a", "1", "PX", 100);
  bench.nowMs += 100;
  assertEquals([bench.ask("GET", "a"), bench.ask("PTTL", "a")], ["$1\r\n1", ":0"]);
  bench.nowMs += 1;
  assertEquals([bench.ask("GET", "a"), bench.ask("PTTL", "a")], ["$-1", ":-2"]);
});

test("MemoryRedis.session() delivers messages at once, or in front of the next reply", (redis) => {
  const messages: string[] = [];
  const listener = redis.session({ onMessage: (bytes) => messages.push(latin1.decode(bytes)) });
  const polling = redis.session();
  for (const session of [listener, polling]) ask(session, "SUBSCRIBE", "news");
  assertEquals(ask(redis.session(), "PUBLISH", "news", "hi"), ":2");
  assertEquals(messages, [`${NEWS}\r\n`]);
  assertEquals(ask(polling, "PING"), `${NEWS}\r\n*2\r\n$4\r\npong\r\n$0`);
});

test.session("MemoryRedis.session() leaves its channels in the order in which it subscribed to them", (session) => {
  ask(session, "SUBSCRIBE", "b", "a");
  const notices = ["b\r\n:1", "a\r\n:0"].map((rest) => `*3\r\n$11\r\nunsubscribe\r\n$1\r\n${rest}`);
  assertEquals(ask(session, "UNSUBSCRIBE"), notices.join("\r\n"));
});

for (const how of ["close()", "QUIT"]) {
  test(`MemoryRedis.session() is over after ${how}: it answers nothing, receives nothing and says so once`, (redis) => {
    let ends = 0;
    const session = redis.session({ onEnd: () => ends++ });
    if (how === "QUIT") {
      const bytes = requests(["QUIT"], ["SET", "a", "1"]);
      assertEquals(latin1.decode(session.push(bytes)), "+OK\r\n");
    } else {
      ask(session, "SUBSCRIBE", "news");
      session.close();
    }
    session.close();
    assertEquals([session.ended, ends, ask(session, "PING")], [true, 1, ""]);
    assertEquals(ask(redis.session(), "PUBLISH", "news", "hi"), ":0");
    assertEquals(ask(redis.session(), "EXISTS", "a"), ":0");
  });
}

test("MemoryRedis.restart() ends sessions and forgets keys, scripts and channels", (redis) => {
  let ends = 0;
  const session = redis.session({ onEnd: () => ends++ });
  ask(session, "SET", "a", "1");
  ask(session, "SCRIPT", "LOAD", RELEASE.source);
  ask(session, "SUBSCRIBE", "news");
  redis.restart();
  assertEquals([session.ended, ends], [true, 1]);
  const after = redis.session();
  assertEquals([ask(after, "CLIENT", "ID"), ask(after, "EXISTS", "a")], [":1", ":0"]);
  assertEquals(ask(after, "SCRIPT", "EXISTS", RELEASE.sha1), "*1\r\n:0");
  assertEquals(ask(after, "PUBLISH", "news", "hi"), ":0");
});

Deno.test("MemoryRedis.restart({ keepData: true }) keeps the keys, whose lives go on, and counts its uptime anew", () => {
  const bench = new MemoryBench();
  bench.ask("SET", "a", "1", "PX", 2_000);
  bench.ask("SET", "b", "1", "PX", 1_000);
  bench.nowMs += 900;
  bench.redis.restart({ keepData: true });
  bench.nowMs += 400;
  const session = bench.redis.session();
  assertEquals([ask(session, "PTTL", "a"), ask(session, "PTTL", "b")], [":700", ":-2"]);
  bench.nowMs += 800; // 1.2 s after the restart, and 2.1 s after the start
  assertMatch(ask(session, "INFO", "server"), /uptime_in_seconds:1\r/u);
});

test("MemoryRedis.flush() deletes the keys of every database and keeps sessions and scripts", (redis) => {
  const session = redis.session();
  ask(session, "SCRIPT", "LOAD", RELEASE.source);
  ask(session, "SELECT", 3);
  ask(session, "SET", "a", "1");
  redis.flush();
  assertEquals(ask(session, "GET", "a"), "$-1");
  assertEquals(ask(session, "SCRIPT", "EXISTS", RELEASE.sha1), "*1\r\n:1");
});

test("MemoryRedis.fill() refuses what may need memory, also after a restart, until there is room", (redis) => {
  const refusal = "-OOM command not allowed when used memory > 'maxmemory'.";
  redis.fill();
  assertEquals(ask(redis.session(), "SET", "a", "1"), refusal);
  redis.restart();
  const session = redis.session();
  assertEquals(ask(session, "SET", "a", "1"), refusal);
  assertEquals([ask(session, "GET", "a"), ask(session, "DEL", "a")], ["$-1", ":0"]);
  const first = ask(session, "EVAL", "return redis.call('SET', 'a', 1)", 0);
  assert(first.startsWith(refusal), first);
  const source = "redis.call('DEL', 'a') return redis.call('SET', 'a', 1)";
  assertEquals(ask(session, "EVAL", source, 0), "+OK");
  redis.fill(false);
  assertEquals(ask(session, "SET", "a", "1"), "+OK");
});

Deno.test("MemoryRedis.connect() rejects with the reason of a signal that was aborted", async () => {
  const signal = AbortSignal.abort(new Error("given up"));
  await assertRejects(() => new MemoryRedis().connect(TARGET, { signal }), Error, "given up");
});

for (const how of ["closed", "restarted"]) {
  test(`MemoryRedis.connect() opens a stream whose pending read ends when it is ${how}`, async (redis) => {
    const stream = await redis.connect(TARGET, { signal: new AbortController().signal });
    const reading = stream.read(new Uint8Array(8));
    if (how === "closed") stream.close();
    else redis.restart();
    assertEquals(await reading, null);
  });
}

Deno.test("startNodes() and MemoryRedis refuse what they do not know", async () => {
  const options = { passwort: "s/cret" } as object;
  const unknown = "option 'passwort' is unknown: valid options are clock, password";
  const count = "'count' must be an integer from 1 to 31: current value is 0";
  const nodes = "Cannot start nodes as";
  await assertRejects(() => startNodes(0), RangeError, `${nodes} ${count}`);
  await assertRejects(() => startNodes(1, options), TypeError, `${nodes} ${unknown}`);
  const { message } = assertThrows(() => new MemoryRedis(options), TypeError);
  assertEquals(message, `Cannot create server as ${unknown}`);
});
