import { assertEquals, assertInstanceOf } from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { test } from "../../support/connection_bench.ts";
import { FakeTransport, PING, wire } from "../../support/fake_transport.ts";
import { LOST, NAME } from "../../support/stream_bench.ts";

const LOGIN = wire("AUTH", "locker", "hunter2") + wire("CLIENT", "SETNAME", "hasp");

test("Connection sends the login and the commands that wait in one write, and each gets its reply", async (bench) => {
  bench.use({ clientName: "hasp" }, "redis://locker:hunter2@h");
  bench.queue(1);
  await bench.submit(2);
  assertEquals([bench.transport.writes, bench.events], [[LOGIN + PING + PING], ["connected"]]);
  await bench.submit(3); // while the login is not answered
  assertEquals(bench.transport.writes.slice(1), [PING]);
  await bench.feed("+OK\r\n+OK\r\n+one\r\n-ERR two\r\n");
  await bench.advance(2_600);
  const replies = bench.replies.map(([context, reply]) => [context, String(reply)]);
  const message = `Connection to ${NAME} was silent for 2000 ms`;
  assertEquals(replies, [[1, "one"], [2, "ReplyError: ERR two"], [3, message]]);
});

test("Connection sends the login in front of as many commands as its first queue has room for", async (bench) => {
  bench.use({}, "redis://:pw@h");
  for (let id = 1; id < 16; id++) bench.queue(id);
  await bench.submit(16);
  assertEquals(bench.transport.writes, [wire("AUTH", "pw") + PING.repeat(16)]);
});

test("Connection counts the login towards connectTimeoutMs, and takes what undoes for a moment more", async (bench) => {
  bench.use({ connectTimeoutMs: 9_000 }, "redis://:pw@h"); // more than stallTimeoutMs
  bench.queue(1);
  await bench.advance(9_001);
  const message = `Connection to ${NAME} could not be made: no answer within 9000 ms`;
  assertEquals([bench.replies, bench.transport.closed], [[[1, message, "unknown"]], false]);
  assertEquals([bench.connection.open, bench.connection.crowded?.message], [false, message]);
  const { length } = bench.transport.writes;
  await bench.submit(2);
  assertEquals(bench.transport.writes.slice(length), [PING]);
  await bench.feed("+OK\r\n+PONG\r\n"); // replies to commands that have failed
  await bench.advance(50);
  assertEquals([bench.replies.slice(1), bench.transport.closed], [[[2, message, "unknown"]], true]);
});

test("Connection whose stream breaks while it takes what undoes connects again once", async (bench) => {
  bench.use({}, "redis://:pw@h");
  for (let id = 0; id < 256; id++) bench.queue(id);
  await bench.advance(0);
  const { transport, connection } = bench;
  const broken = () => {
    throw new Error("broken pipe");
  };
  Object.assign(transport, { write: broken, send: "send" in transport ? broken : undefined });
  bench.onFailure = ({ outcome }) => {
    if (outcome === "unknown") connection.submit({ args: ["PING"], name: 0 }, bench);
  };
  await bench.feed("-WRONGPASS\r\n");
  assertEquals([connection.state, bench.wheel.size], ["down", 1]);
});

for (
  const [step, replies, refusal] of [
    ["AUTH", "", "WRONGPASS invalid username-password pair or user is disabled."],
    ["SELECT", "+OK\r\n", "ERR DB index is out of range"],
    ["SELECT", "+OK\r\n", "NOPERM this user has no permissions to run the 'select' command"],
    ["CLIENT SETNAME", "+OK\r\n+OK\r\n", "NOAUTH Authentication required."],
  ]
) {
  test(`Connection sends no command for another database if ${step} fails, and says why`, async (bench) => {
    bench.use({ clientName: "hasp" }, "redis://locker:hunter2@h/3");
    await bench.submit(1, "SET", "k", "secret");
    const { transport } = bench;
    await bench.feed(`${replies}-${refusal}\r\n`);
    const message = `Connection to ${NAME}/3 was refused: ${refusal}`;
    assertEquals(bench.replies, [[1, message, "not-sent"]]);
    assertInstanceOf(bench.errors[0].cause, ReplyError);
    assertEquals([transport.written.includes("secret"), transport.closed], [false, true]);
  });
}

for (
  const refusal of [
    "NOPERM this user has no permissions to run the 'client|setname' command",
    "ERR unknown command 'CLIENT', with args beginning with: 'SETNAME' 'hasp' ",
  ]
) {
  test(`Connection does without a name if the server answers ${refusal}`, async (bench) => {
    bench.use({ clientName: "hasp" }, "redis://h/3");
    await bench.submit(1);
    await bench.answer(`+OK\r\n-${refusal}\r\n`);
    await bench.feed("+PONG\r\n");
    assertEquals(bench.replies, [[1, "PONG"]]);
  });
}

test("Connection that was lost is open again when the server has answered a PING behind the login, and not before", async (bench) => {
  const accepted: boolean[] = [];
  bench.use({
    clientName: "hasp",
    onAccepted: () => accepted.push(true),
    onLost: () => accepted.push(false),
  }, "redis://locker:hunter2@h");
  await bench.submit(1);
  await bench.answer("+OK\r\n+OK\r\n+PONG\r\n");
  await bench.hangUp();
  assertEquals(await bench.nextStream(), LOGIN + PING);
  await bench.feed("+OK\r\n+OK\r\n");
  await bench.submit(2);
  assertEquals(bench.replies.slice(1), [[2, LOST, "not-sent"]]);
  assertEquals([bench.connection.open, accepted], [false, [true, false]]);
  await bench.answer("+PONG\r\n");
  assertEquals([bench.connection.open, accepted], [true, [true, false, true]]);
  await bench.submit(3);
  await bench.feed("+three\r\n");
  assertEquals(bench.replies.slice(2), [[3, "three"]]);
});

for (
  const [word, open] of [
    ["NOPERM", true],
    ["MISCONF", true],
    ["LOADING", false],
    ["BUSY", false],
    ["MASTERDOWN", false],
  ] as const
) {
  test.open(`Connection that was lost is ${open ? "open again" : "still down"} if ${word} answers its PING`, async (bench) => {
    await bench.hangUp();
    await bench.nextStream();
    await bench.answer(`-${word} no\r\n`);
    assertEquals(bench.connection.open, open);
  });
}

test("Connection shows no password and no arguments in any error", async (bench) => {
  bench.use({}, "redis://user:hunter2@h");
  const set = ["SET", "k", "secret"];
  await bench.submit(1, ...set);
  await bench.feed("-ERR unknown command 'AUTH', with args beginning with: 'user' 'hunter2' \r\n");
  await bench.reconnect();
  await bench.feed("+OK\r\n+PONG\r\n");
  await bench.submit(2, ...set);
  await bench.feed("secret\r\n");
  bench.queue(3, ...set);
  await bench.close();
  bench.queue(4, ...set);
  assertEquals(bench.errors.length, 4);
  for (const error of bench.errors) {
    const shown = Deno.inspect(error, { depth: 10 }).split("\n")
      .filter((line) => !/^\s*at /u.test(line)).join("\n");
    assertEquals(/hunter2|secret/u.test(shown), false, shown);
  }
});

test("Connection writes its login from memory that no other connection's stream is given a part of", async (bench) => {
  const slabs: ArrayBufferLike[] = [];
  bench.network.make = () => {
    const transport = new FakeTransport();
    const write = transport.write.bind(transport);
    transport.write = (bytes) => {
      slabs.push(bytes.buffer);
      return write(bytes);
    };
    return transport;
  };
  bench.use({}, "redis://locker:hunter2@h");
  await bench.submit(1);
  await bench.feed("+OK\r\n+PONG\r\n");
  await bench.submit(2); // from the memory that all connections share
  const texts = slabs.map((slab) => new TextDecoder().decode(slab));
  assertEquals(texts.map((text) => text.includes("hunter2")), [true, false]);
});
