import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { PRINTABLE_LENGTH_MAX } from "../../../src/printable.ts";
import {
  ConnectionError,
  ProtocolError,
  RedisError,
  ReplyError,
} from "../../../src/redis/errors.ts";

Deno.test("ReplyError takes its prefix from the server's text", () => {
  const error = new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
  assertInstanceOf(error, RedisError);
  assertEquals(error.name, "ReplyError");
  assertEquals(error.code, "REPLY");
  assertEquals(error.prefix, "WRONGTYPE");
  assertEquals(
    error.message,
    "WRONGTYPE Operation against a key holding the wrong kind of value",
  );
});

for (
  const text of [
    "ERR unknown command 'AUTH', with args beginning with: 'user' 'secret' ",
    "ERR unknown command `AUTH`, with args beginning with: `secret`, ",
    "ERR unknown command 'AUTH' with args beginning with: secret",
  ]
) {
  Deno.test(`ReplyError cuts off the arguments that a server repeats: ${text.slice(0, 28)}`, () => {
    const error = new ReplyError(text);
    assertEquals(error.message.includes("secret"), false);
    assertEquals(error.message.startsWith("ERR unknown command "), true);
    assertEquals(error.prefix, "ERR");
  });
}

Deno.test("ReplyError keeps control characters and a password out of its message and its prefix", () => {
  const error = new ReplyError("hunter2\x1b[31m wrong hunter2\nnode-2: fine", "hunter2");
  assertEquals(error.message, "***\\u{1b}[31m wrong ***\\u{a}node-2: fine");
  assertEquals(error.prefix, "***\\u{1b}[31m");
});

Deno.test("ReplyError cuts a long text off", () => {
  const { message, prefix } = new ReplyError("x".repeat(100_000));
  assertEquals([message.length, prefix.length], [
    PRINTABLE_LENGTH_MAX + 1,
    PRINTABLE_LENGTH_MAX + 1,
  ]);
});

for (const password of ["NO", "NOSCRIPT", "SCRIPT", "O"]) {
  Deno.test(`ReplyError keeps a prefix that programs act on, though the password is ${password}`, () => {
    const error = new ReplyError("NOSCRIPT No matching script", password);
    assertEquals(error.prefix, "NOSCRIPT");
    assertEquals(error.message.slice("NOSCRIPT".length).includes(password), false);
  });
}

Deno.test("ProtocolError has a name and a code", () => {
  const error = new ProtocolError("Cannot read reply");
  assertInstanceOf(error, RedisError);
  assertEquals([error.name, error.code], ["ProtocolError", "PROTOCOL"]);
});

Deno.test("ConnectionError says which server, what is known of the command, and why", () => {
  const cause = new Error("refused");
  const error = new ConnectionError("Connection lost", {
    address: "redis://h:6379",
    outcome: "unknown",
    cause,
  });
  assertInstanceOf(error, RedisError);
  assertEquals([error.name, error.code], ["ConnectionError", "CONNECTION"]);
  assertEquals([error.address, error.outcome], ["redis://h:6379", "unknown"]);
  assertStrictEquals(error.cause, cause);
});

for (
  const [text, permanent] of [
    ["NOAUTH Authentication required.", true],
    ["WRONGPASS invalid username-password pair or user is disabled.", true],
    ["NOPERM this user has no permissions to run the 'set' command", true],
    ["DENIED Redis is running in protected mode", true],
    ["ERR unknown command 'EVAL'", true],
    ["ERR invalid password", true],
    ["ERR Client sent AUTH, but no password is set", true],
    ["ERR AUTH <password> called without any password configured for the default user.", true],
    ["ERR DB index is out of range", true],
    ["ERR invalid DB index", true],
    ["ERR SELECT is not allowed in cluster mode", true],
    ["ERR max number of clients reached", false],
    ["LOADING Redis is loading the dataset in memory", false],
    ["READONLY You can't write against a read only replica.", false],
    ["OOM command not allowed when used memory > 'maxmemory'.", false],
    ["BUSY Redis is busy running a script.", false],
  ] as const
) {
  Deno.test(`ReplyError and the ConnectionError that it causes are ${permanent ? "permanent" : "not permanent"}: ${text}`, () => {
    const cause = new ReplyError(text);
    const details = { address: "redis://h:6379", outcome: "not-sent", cause } as const;
    assertEquals([cause.permanent, new ConnectionError("Refused", details).permanent], [
      permanent,
      permanent,
    ]);
  });
}

Deno.test("RedisError is not permanent unless the server says so", () => {
  assertEquals(new ProtocolError("Cannot read reply").permanent, false);
  const details = { address: "redis://h:6379", outcome: "unknown" } as const;
  assertEquals(new ConnectionError("Lost", details).permanent, false);
  const cause = new Error("refused");
  assertEquals(new ConnectionError("Lost", { ...details, cause }).permanent, false);
});
