import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createRedlock } from "../../../mod.ts";
import type { Clock } from "../../../src/time/clock.ts";
import { encodeCommand, joinCommands } from "../../../src/redis/encoder.ts";
import { connect } from "../../../src/redis/client.ts";
import { ACQUIRE_ALL } from "../../../src/redis_node/scripts/acquire.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { MemoryRedis, type MemorySession, startNodes } from "../../../src/testing/mod.ts";
import type { Connect } from "../../../src/transport/transport.ts";

const encoder = new TextEncoder();
const latin1 = new TextDecoder("latin1");

function ask(session: MemorySession, ...command: (string | number | Uint8Array)[]): string {
  return latin1.decode(session.push(encodeCommand(command)));
}

/** A clock whose wall time the test sets; nothing else of it is used. */
class WallClock implements Clock {
  nowMs = 1_700_000_000_123.456;
  monotonicMs = () => this.nowMs;
  wallMs = () => this.nowMs;
  setTimer = () => undefined;
  clearTimer = () => {};
  keepAlive = () => {};
}

Deno.test("MemoryRedis.session() answers a request that comes byte by byte once it is complete", () => {
  const session = new MemoryRedis().session();
  const bytes = encodeCommand(["PING"]);
  const replies = [...bytes].map((byte) => latin1.decode(session.push(Uint8Array.of(byte))));
  assertEquals(replies, [...new Array(bytes.length - 1).fill(""), "+PONG\r\n"]);
});

Deno.test("MemoryRedis.session() answers several requests of one piece in their order", () => {
  const session = new MemoryRedis().session();
  const requests = joinCommands([["SET", "a", "1"], ["GET", "a"]].map(encodeCommand));
  assertEquals(latin1.decode(session.push(requests)), "+OK\r\n$1\r\n1\r\n");
});

Deno.test("MemoryRedis.session() ends the connection after bytes that are no request", () => {
  const session = new MemoryRedis().session();
  const reply = latin1.decode(session.push(encoder.encode("PING\r\n")));
  assertEquals(reply, "-ERR Protocol error: expected an array of bulk strings\r\n");
  assertEquals(session.ended, true);
  assertEquals(ask(session, "PING"), "");
});

Deno.test("MemoryRedis.session() keeps every byte of a key and a value", () => {
  const session = new MemoryRedis().session();
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  ask(session, "SET", bytes, bytes);
  assertEquals(
    session.push(encodeCommand(["GET", bytes])),
    Uint8Array.of(
      ...encoder.encode("$256\r\n"),
      ...bytes,
      ...encoder.encode("\r\n"),
    ),
  );
});

Deno.test("MemoryRedis.session() drops a key one millisecond after its life has ended", () => {
  const clock = new WallClock();
  const session = new MemoryRedis({ clock }).session();
  ask(session, "SET", "a", "1", "PX", 100);
  clock.nowMs += 100;
  assertEquals([ask(session, "GET", "a"), ask(session, "PTTL", "a")], ["$1\r\n1\r\n", ":0\r\n"]);
  clock.nowMs += 1;
  assertEquals([ask(session, "GET", "a"), ask(session, "PTTL", "a")], ["$-1\r\n", ":-2\r\n"]);
});

Deno.test("MemoryRedis.session() tells the time of its clock", () => {
  const session = new MemoryRedis({ clock: new WallClock() }).session();
  assertEquals(ask(session, "TIME"), "*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n");
});

Deno.test("MemoryRedis.session() keeps its own database and name and shares the keys", () => {
  const redis = new MemoryRedis();
  const [one, other] = [redis.session(), redis.session()];
  ask(one, "SELECT", 3);
  ask(one, "CLIENT", "SETNAME", "one");
  ask(one, "SET", "a", "1");
  assertEquals([ask(other, "GET", "a"), ask(other, "CLIENT", "GETNAME")], ["$-1\r\n", "$-1\r\n"]);
  ask(other, "SELECT", 3);
  assertEquals(ask(other, "GET", "a"), "$1\r\n1\r\n");
});

Deno.test("MemoryRedis.session() lets nothing through before the password is given", () => {
  const session = new MemoryRedis({ password: "secret" }).session();
  assertEquals(ask(session, "GET", "a"), "-NOAUTH Authentication required.\r\n");
  assertEquals(
    ask(session, "AUTH", "wrong"),
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
  );
  assertEquals(ask(session, "AUTH", "default", "secret"), "+OK\r\n");
  assertEquals(ask(session, "GET", "a"), "$-1\r\n");
});

Deno.test("MemoryRedis.session() knows no HELLO, as it speaks RESP2 alone", () => {
  const reply = ask(new MemoryRedis().session(), "HELLO", "3");
  assertEquals(reply, "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n");
});

Deno.test("MemoryRedis.session() runs a script by its SHA-1 only once it was loaded", () => {
  const session = new MemoryRedis().session();
  ask(session, "SET", "a", "v");
  const noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
  assertEquals(ask(session, "EVALSHA", RELEASE.sha1, 1, "a", "v"), noScript);
  assertEquals(ask(session, "SCRIPT", "LOAD", RELEASE.source), `$40\r\n${RELEASE.sha1}\r\n`);
  assertEquals(ask(session, "EVALSHA", RELEASE.sha1, 1, "a", "other"), ":0\r\n");
  assertEquals(ask(session, "EVALSHA", RELEASE.sha1, 1, "a", "v"), ":1\r\n");
  ask(session, "SCRIPT", "FLUSH");
  assertEquals(ask(session, "EVALSHA", RELEASE.sha1, 1, "a", "v"), noScript);
});

Deno.test("MemoryRedis.session() sets all keys of an acquisition or none", () => {
  const session = new MemoryRedis().session();
  ask(session, "SET", "b", "other");
  assertEquals(ask(session, "EVAL", ACQUIRE_ALL.source, 2, "a", "b", "v", 1000), ":0\r\n");
  assertEquals(ask(session, "EXISTS", "a"), ":0\r\n");
  assertEquals(ask(session, "EVAL", ACQUIRE_ALL.source, 2, "a", "c", "v", 1000), ":1\r\n");
});

Deno.test("MemoryRedis.session() extends what holds the value and never shortens it", () => {
  const session = new MemoryRedis({ clock: new WallClock() }).session();
  ask(session, "SET", "a", "v", "PX", 100);
  assertEquals(ask(session, "EVAL", EXTEND.source, 1, "a", "v", 500), ":1\r\n");
  assertEquals(ask(session, "EVAL", EXTEND.source, 1, "a", "v", 200), ":1\r\n");
  assertEquals(ask(session, "PTTL", "a"), ":500\r\n");
  assertEquals(ask(session, "EVAL", EXTEND.source, 1, "a", "other", 900), ":0\r\n");
  assertEquals(ask(session, "PTTL", "a"), ":500\r\n");
});

Deno.test("MemoryRedis.session() extends those of several keys that hold the value, and sets none that is missing", () => {
  const session = new MemoryRedis({ clock: new WallClock() }).session();
  ask(session, "SET", "a", "v", "PX", 100);
  assertEquals(ask(session, "EVAL", EXTEND.source, 3, "gone", "a", "lost", "v", 500), ":2\r\n");
  assertEquals(ask(session, "PTTL", "a"), ":500\r\n");
  assertEquals(ask(session, "EXISTS", "gone", "lost"), ":0\r\n");
  ask(session, "SET", "b", "another", "PX", 100);
  assertEquals(ask(session, "EVAL", EXTEND.source, 3, "gone", "a", "b", "v", 900), ":0\r\n");
  assertEquals(ask(session, "PTTL", "a"), ":500\r\n");
});

Deno.test("MemoryRedis.session() releases what it holds beside a key of another type, and says so", () => {
  const session = new MemoryRedis().session();
  ask(session, "ZADD", "set", 1, "v");
  ask(session, "SET", "a", "v");
  assertEquals(
    ask(session, "EVAL", RELEASE_QUEUED.source, 2, "set", "a", "v"),
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
  );
  assertEquals(ask(session, "EXISTS", "a", "set"), ":1\r\n");
});

for (
  const [score, shown] of [
    ["1700000000000001", "1700000000000001"],
    ["-1.50", "-1.5"],
    ["0.1", "0.10000000000000001"],
    [".5e-7", "4.9999999999999998e-08"],
    ["1e300", "1.0000000000000001e+300"],
    ["+inf", "inf"],
    ["-Infinity", "-inf"],
  ]
) {
  Deno.test(`MemoryRedis.session() shows the score ${score} as redis-server does`, () => {
    const session = new MemoryRedis().session();
    ask(session, "ZADD", "s", score, "x");
    const reply = ask(session, "ZSCORE", "s", "x");
    assertEquals(reply, `$${shown.length}\r\n${shown}\r\n`);
  });
}

Deno.test("MemoryRedis.session() says that it does not run a script of somebody else's", () => {
  assertEquals(
    ask(new MemoryRedis().session(), "EVAL", "return 1", 0),
    "-ERR MemoryRedis runs only the scripts of @hasp/redlock and node-redlock, not this one\r\n",
  );
});

Deno.test("MemoryRedis.connect() serves a client without a socket", async () => {
  const redis = new MemoryRedis({ password: "secret" });
  await using client = await connect("redis://:secret@anywhere/2", { connect: redis.connect });
  assertEquals(await client.send(["SET", "greeting", "grüße"]), "OK");
  assertEquals(await client.send(["GET", "greeting"]), "grüße");
});

Deno.test("MemoryRedis.connect() rejects with the reason of a signal that was aborted", async () => {
  const signal = AbortSignal.abort(new Error("given up"));
  const target = { kind: "tcp", hostname: "node-1", port: 6379 } as const;
  await assertRejects(() => new MemoryRedis().connect(target, { signal }), Error, "given up");
});

Deno.test("MemoryRedis.connect() opens a stream whose pending read ends when it is closed", async () => {
  const target = { kind: "tcp", hostname: "node-1", port: 6379 } as const;
  const { signal } = new AbortController();
  const stream = await new MemoryRedis().connect(target, { signal });
  const reading = stream.read(new Uint8Array(8));
  stream.close();
  assertEquals(await reading, null);
});

Deno.test("MemoryRedis.connect() carries locks over several nodes", async () => {
  const hosts = ["node-1", "node-2", "node-3"];
  const servers = new Map(hosts.map((host) => [host, new MemoryRedis()]));
  const among: Connect = (target, options) => {
    if (target.kind !== "tcp") throw new TypeError("Only TCP addresses are served");
    return servers.get(target.hostname)!.connect(target, options);
  };
  await using redlock = createRedlock(hosts.map((host) => `redis://${host}`), { connect: among });
  const lock = await redlock.acquire(["a", "b"]);
  assertEquals(await redlock.tryAcquire("b"), undefined);
  await lock.extend();
  assertEquals(lock.extensions, 1);
  assertEquals(await lock.release(), true);
  assertEquals((await redlock.inspect("a")).held, false);
});

Deno.test("startNodes() refuses a count that is out of range", async () => {
  await assertRejects(
    () => startNodes(0),
    RangeError,
    "Cannot start nodes as 'count' must be an integer from 1 to 31: current value is 0",
  );
});

Deno.test("startNodes() refuses an option that it does not know", async () => {
  await assertRejects(
    () => startNodes(1, { passwort: "s/cret" } as object),
    TypeError,
    "Cannot start nodes as option 'passwort' is unknown: valid options are clock, password",
  );
});

Deno.test("MemoryRedis refuses an option that it does not know", () => {
  const error = assertThrows(() => new MemoryRedis({ passwort: "s/cret" } as object), TypeError);
  assertEquals(
    error.message,
    "Cannot create server as option 'passwort' is unknown: valid options are clock, password",
  );
});
