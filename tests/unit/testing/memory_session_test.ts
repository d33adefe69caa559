import { assertEquals, assertNotEquals } from "@std/assert";
import type { Clock } from "../../../src/time/clock.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { MemoryRedis, type MemorySession } from "../../../src/testing/mod.ts";

const latin1 = new TextDecoder("latin1");
const NEWS = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";

function ask(session: MemorySession, ...command: (string | number)[]): string {
  return latin1.decode(session.push(encodeCommand(command)));
}

Deno.test("MemoryRedis.session() hands messages over as they are published", () => {
  const redis = new MemoryRedis();
  const messages: string[] = [];
  const listener = redis.session({ onMessage: (bytes) => messages.push(latin1.decode(bytes)) });
  const publisher = redis.session();
  ask(listener, "SUBSCRIBE", "news");
  assertEquals(ask(publisher, "PUBLISH", "news", "hi"), ":1\r\n");
  assertEquals(messages, [NEWS]);
});

Deno.test("MemoryRedis.session() puts messages in front of the next replies where nobody takes them", () => {
  const redis = new MemoryRedis();
  const [listener, publisher] = [redis.session(), redis.session()];
  ask(listener, "SUBSCRIBE", "news");
  ask(publisher, "PUBLISH", "news", "hi");
  assertEquals(ask(listener, "PING"), `${NEWS}*2\r\n$4\r\npong\r\n$0\r\n\r\n`);
  assertEquals(ask(listener, "PING", "x"), "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
});

Deno.test("MemoryRedis.session() leaves its channels in the order in which it came to them", () => {
  const session = new MemoryRedis().session();
  ask(session, "SUBSCRIBE", "b", "a");
  assertEquals(
    ask(session, "UNSUBSCRIBE"),
    "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n",
  );
});

Deno.test("MemorySession.close() listens no more, answers nothing and says so once", () => {
  const redis = new MemoryRedis();
  let ends = 0;
  const listener = redis.session({ onEnd: () => ends++ });
  ask(listener, "SUBSCRIBE", "news");
  listener.close();
  listener.close();
  assertEquals([listener.ended, ends, ask(listener, "PING")], [true, 1, ""]);
  assertEquals(ask(redis.session(), "PUBLISH", "news", "hi"), ":0\r\n");
});

Deno.test("MemoryRedis.session() is over after QUIT, and what follows is not run", () => {
  const redis = new MemoryRedis();
  let ends = 0;
  const session = redis.session({ onEnd: () => ends++ });
  const requests = [["QUIT"], ["SET", "a", "1"]].map((words) =>
    latin1.decode(encodeCommand(words))
  );
  const reply = session.push(new TextEncoder().encode(requests.join("")));
  assertEquals([latin1.decode(reply), session.ended, ends], ["+OK\r\n", true, 1]);
  assertEquals(ask(redis.session(), "EXISTS", "a"), ":0\r\n");
});

Deno.test("MemoryRedis.restart() ends sessions and forgets keys, scripts and listeners", () => {
  const redis = new MemoryRedis();
  let ends = 0;
  const session = redis.session({ onEnd: () => ends++ });
  ask(session, "SET", "a", "1");
  ask(session, "SCRIPT", "LOAD", RELEASE.source);
  ask(session, "SUBSCRIBE", "news");
  redis.restart();
  assertEquals([session.ended, ends], [true, 1]);
  const after = redis.session();
  assertEquals(ask(after, "CLIENT", "ID"), ":1\r\n");
  assertEquals(ask(after, "EXISTS", "a"), ":0\r\n");
  assertEquals(ask(after, "SCRIPT", "EXISTS", RELEASE.sha1), "*1\r\n:0\r\n");
  assertEquals(ask(after, "PUBLISH", "news", "hi"), ":0\r\n");
});

Deno.test("MemoryRedis.restart({ keepData: true }) keeps the keys, and their lives run on", () => {
  let nowMs = 1_700_000_000_000;
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs } as Clock;
  const redis = new MemoryRedis({ clock });
  ask(redis.session(), "SET", "a", "1", "PX", 1_000);
  ask(redis.session(), "SET", "b", "1", "PX", 10);
  redis.restart({ keepData: true });
  nowMs += 400;
  assertEquals(ask(redis.session(), "PTTL", "a"), ":600\r\n");
  assertEquals(ask(redis.session(), "PTTL", "b"), ":-2\r\n");
});

Deno.test("MemoryRedis tells in INFO how long it has run, and another run_id after each start", () => {
  let nowMs = 1_700_000_000_000;
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs } as Clock;
  const redis = new MemoryRedis({ clock });
  const info = (name: string) =>
    new RegExp(`^${name}:(.*)\r$`, "mu").exec(ask(redis.session(), "INFO", "server"))?.[1];
  nowMs += 90_061_999;
  assertEquals([info("uptime_in_seconds"), info("uptime_in_days")], ["90061", "1"]);
  const before = info("run_id");
  assertEquals(/^[\da-f]{40}$/u.test(before!), true);
  assertEquals(info("run_id"), before);
  redis.restart();
  assertEquals(info("uptime_in_seconds"), "0");
  assertNotEquals(info("run_id"), before);
});

Deno.test("MemoryRedis.flush() takes the keys of every database and leaves sessions and scripts", () => {
  const redis = new MemoryRedis();
  const session = redis.session();
  ask(session, "SCRIPT", "LOAD", RELEASE.source);
  ask(session, "SELECT", 3);
  ask(session, "SET", "a", "1");
  redis.flush();
  assertEquals(ask(session, "GET", "a"), "$-1\r\n");
  assertEquals(ask(session, "SCRIPT", "EXISTS", RELEASE.sha1), "*1\r\n:1\r\n");
});

Deno.test("MemoryRedis.restart() ends the stream of a client that waits for more", async () => {
  const redis = new MemoryRedis();
  const target = { kind: "tcp", hostname: "node-1", port: 6379 } as const;
  const stream = await redis.connect(target, { signal: new AbortController().signal });
  const reading = stream.read(new Uint8Array(8));
  redis.restart();
  assertEquals(await reading, null);
});
