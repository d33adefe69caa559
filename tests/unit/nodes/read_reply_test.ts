import { assertEquals, assertInstanceOf } from "@std/assert";
import { readReply, replyErrorOf } from "../../../src/nodes/read_reply.ts";
import { ReplyError } from "../../../src/redis/errors.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("readReply() reads the reply to SET as text or bytes", () => {
  for (const reply of ["OK", bytes("OK"), bytes("OK").buffer]) {
    assertEquals(readReply(["SET"], reply), "OK");
  }
  assertEquals(readReply(["SET"], null), null);
});

Deno.test("readReply() reads integers as numbers, digits, bytes or bigint", () => {
  for (const name of ["EVAL", "EVALSHA", "PTTL", "PUBLISH", "ZCARD"]) {
    for (const reply of [12, "12", bytes("12"), 12n]) assertEquals(readReply([name], reply), 12);
    assertEquals(readReply([name], "-2"), -2);
  }
  assertEquals(readReply(["EVAL"], ["1", 2, bytes("3"), 4n, "-5"]), [1, 2, 3, 4, -5]);
  for (const reply of ["OK", null, [1, null], [[1]]]) {
    assertEquals(readReply(["EVAL"], reply), undefined);
  }
});

for (const [what, more] of [["queues", []], ["the queues of a pool", ["1", 0]]] as const) {
  Deno.test(`readReply() reads a place in ${what}: numbers and a value`, () => {
    const numbers = [700, "2", 5n, "77", bytes("1700000000250000"), -2];
    const reply = [...numbers, "", "60", ...more];
    const read = [700, 2, 5, 77, 1_700_000_000_250_000, -2];
    const expected = [...read, bytes(""), 60, ...more.map(Number)];
    assertEquals(readReply(["EVALSHA"], reply), expected);
    assertEquals(readReply(["EVALSHA"], reply.slice(0, 7)), undefined);
    assertEquals(readReply(["EVALSHA"], [...reply.slice(0, 5), "x", ...reply.slice(6)]), undefined);
  });
}

Deno.test("readReply() reads the value of a key as bytes, whatever it looks like", () => {
  for (const reply of ["12", 12, bytes("12")]) assertEquals(readReply(["GET"], reply), bytes("12"));
  assertEquals(readReply(["GET"], null), null);
});

Deno.test("readReply() reads maps as RESP2 has them, and TIME in any form", () => {
  const config = ["appendfsync", "no"];
  for (const reply of [config, new Map([["appendfsync", "no"]]), { appendfsync: bytes("no") }]) {
    assertEquals(readReply(["CONFIG"], reply), config);
  }
  assertEquals(readReply(["TIME"], [bytes("1"), "2"]), ["1", "2"]);
  assertEquals(readReply(["TIME"], [1, 2]), [1, 2]);
});

Deno.test("readReply() reads scores in any form", () => {
  const expected = ["a", 1, "b", "2"];
  const object = { a: 1, b: "2" };
  for (const reply of [expected, [["a", 1], ["b", "2"]], object, new Map(Object.entries(object))]) {
    assertEquals(readReply(["ZRANGE"], reply), expected);
  }
  assertEquals(readReply(["ZRANGE"], []), []);
});

/** What a gateway answers in place of the server. */
const WORDS = [{ message: "Endpoint request timed out" }, [], "Bad gateway", 504];

/** Forms that a command is never answered in. */
const UNKNOWN_FORMS: Readonly<Record<string, readonly unknown[]>> = {
  CONFIG: ["no", null, 1, [{ key: "appendfsync", value: "no" }], [["appendfsync", "no"]]],
  EVAL: WORDS.slice(0, 1),
  GET: WORDS.slice(0, 1),
  INFO: [null, 1, ["role:master"], { "127.0.0.1:6379": "role:master" }],
  PING: WORDS,
  PTTL: [[1], null, "soon", WORDS[0]],
  SCAN: ["0", null, ["0"], ["0", "a"], ["0", [["a"]]], ["0", [{ key: "a" }]], [null, []]],
  SET: WORDS,
  TIME: ["1", null, ["1"], ["1", "soon"], { seconds: 1, microseconds: 2 }],
  TYPE: [null, 1, ["string"]],
  ZCARD: [[1], null],
  ZRANGE: [
    "a",
    null,
    ["a"],
    ["a", "b"],
    ["a", null],
    ["a", ["1"]],
    [["a", "1", "2"]],
    [{ key: "a", value: 1 }],
    [{ key: "a", value: 1 }, { key: "b", value: 2 }],
    [{ element: "a", score: 1 }],
  ],
};

for (const [name, forms] of Object.entries(UNKNOWN_FORMS)) {
  Deno.test(`readReply() takes an unknown form of a reply to ${name} for no reply`, () => {
    for (const form of forms) assertEquals(readReply([name], form), undefined);
  });
}

Deno.test("readReply() does not take for a reply what a client returns without one", () => {
  for (const reply of [undefined, false, () => {}, Symbol(), new Error("HTTP 502")]) {
    for (const name of ["SET", "GET", "EVAL", "TIME", "PING"]) {
      assertEquals(readReply([name], reply), undefined);
    }
  }
});

Deno.test("readReply() reads an Error as the reply that it stands for", () => {
  assertInstanceOf(readReply(["SET"], new Error("LOADING later")), ReplyError);
});

Deno.test("replyErrorOf() hides the arguments that a client repeats in its errors", () => {
  const args = ["SET", "invoice:42", "0123456789abcdef", "NX", "PX", "30000"];
  const error = new Error(`ERR no, command was: ${JSON.stringify(args)}`);
  assertEquals(
    replyErrorOf(error, [["GET", "another"], args])?.message,
    'ERR no, command was: ["SET","***","***","NX","PX","30000"]',
  );
});
