import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
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
