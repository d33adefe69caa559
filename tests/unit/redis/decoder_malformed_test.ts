import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import {
  LINE_BYTES_MAX,
  NESTING_MAX,
  REPLY_BYTES_MAX,
  REPLY_ELEMENTS_MAX,
  RespDecoder,
} from "../../../src/redis/decoder.ts";
import { ProtocolError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { byteByByte, bytes, cut, decode } from "../../support/decoding.ts";

const deepest = "*1\r\n".repeat(NESTING_MAX);

const MALFORMED: readonly (readonly [name: string, stream: string, reason: string])[] = [
  ["an unknown type", "!x\r\n", "a reply begins with byte 33"],
  ["a RESP3 map", "%1\r\n", "a reply begins with byte 37"],
  ["HTTP", "HTTP/1.1 400 Bad Request\r\n", "a reply begins with byte 72"],
  ["an empty line", "\r\n", "a line does not end in CR LF"],
  ["a line that ends in LF alone", "+OK\n", "a line does not end in CR LF"],
  ["a CR in the middle of a line", "+O\rK\r\n", "a line has a CR in its middle"],
  ["a CR in the middle of an error", "-O\rK\r\n", "a line has a CR in its middle"],
  ["an integer without digits", ":\r\n", "a number has no digits"],
  ["an integer of a sign alone", ":-\r\n", "a number has no digits"],
  ["an integer with a letter", ":1x\r\n", "a number has a byte that is no digit"],
  ["an integer with a fraction", ":1.5\r\n", "a number has a byte that is no digit"],
  ["an integer with two signs", ":--1\r\n", "a number has a byte that is no digit"],
  ["an integer with a space", ": 1\r\n", "a number has a byte that is no digit"],
  [
    "an integer of more than 64 bits",
    ":9223372036854775808\r\n",
    "an integer has more than 64 bits",
  ],
  [
    "a negative one of more than 64 bits",
    ":-9223372036854775809\r\n",
    "an integer has more than 64 bits",
  ],
  ["a bulk length without digits", "$\r\n", "a number has no digits"],
  ["a bulk length of -2", "$-2\r\n", "a number has a byte that is no digit"],
  ["a bulk length with a plus", "$+1\r\n", "a number has a byte that is no digit"],
  ["a bulk length in hexadecimal", "$0x1\r\n", "a number has a byte that is no digit"],
  [
    "a bulk length above the limit",
    `$${REPLY_BYTES_MAX + 1}\r\n`,
    "a length is more than 536870912",
  ],
  ["an absurd bulk length", `$${"9".repeat(400)}\r\n`, "a length is more than 536870912"],
  ["an array length of -2", "*-2\r\n", "a number has a byte that is no digit"],
  [
    "an array length above the limit",
    `*${REPLY_ELEMENTS_MAX + 1}\r\n`,
    "a length is more than 1048576",
  ],
  ["an absurd array length", `*${"9".repeat(30)}\r\n`, "a length is more than 1048576"],
  [
    "a bulk string that is longer than it says",
    "$1\r\nab\r\n",
    "a bulk string does not end in CR LF",
  ],
  ["a bulk string with LF for CR LF", "$1\r\na\n\n", "a bulk string does not end in CR LF"],
  ["a bulk string with CR CR for CR LF", "$1\r\na\r\r", "a bulk string does not end in CR LF"],
  ["garbage inside an array", "*2\r\n:1\r\n?\r\n", "a reply begins with byte 63"],
  ["nesting above the limit", `${deepest}*1\r\n`, `arrays are nested deeper than ${NESTING_MAX}`],
  [
    "a line above the limit",
    `+${"x".repeat(LINE_BYTES_MAX)}\r\n`,
    `a line is longer than ${LINE_BYTES_MAX} bytes`,
  ],
  [
    "a line above the limit whose end never comes",
    "+" + "x".repeat(LINE_BYTES_MAX + 1),
    `a line is longer than ${LINE_BYTES_MAX} bytes`,
  ],
];

for (const [name, stream, reason] of MALFORMED) {
  Deno.test(`RespDecoder.push() refuses ${name}, whole and byte by byte`, () => {
    const message = `Cannot read reply as ${reason}`;
    assertEquals(decode([bytes(stream)]).error?.message, message);
    assertEquals(decode(byteByByte(bytes(stream))).error?.message, message);
  });
}

Deno.test("RespDecoder.push() hands over what came before the garbage, and nothing behind it", () => {
  const { replies, error } = decode([bytes("+a\r\n:1\r\n?\r\n+b\r\n")]);
  assertEquals(replies, ["a", 1]);
  assertEquals(error?.message, "Cannot read reply as a reply begins with byte 63");
});

Deno.test("RespDecoder.push() throws the same error for ever after garbage", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  const first = assertThrows(() => decoder.push(bytes("?\r\n")), ProtocolError);
  assertStrictEquals(assertThrows(() => decoder.push(bytes("+OK\r\n"))), first);
  assertStrictEquals(assertThrows(() => decoder.push(bytes(""))), first);
  assertEquals(replies, []);
});

Deno.test("RespDecoder.push() shows no payload in its errors", () => {
  const { error } = decode([bytes("$6\r\nsecret!!")]);
  assertEquals(error?.message, "Cannot read reply as a bulk string does not end in CR LF");
  assertEquals(error?.cause, undefined);
});

Deno.test("RespDecoder.push() reads arrays as deep as the limit", () => {
  const { replies, error } = decode([bytes(`${deepest}:7\r\n`)]);
  assertEquals(error, undefined);
  assertEquals([replies].flat(Infinity as 1), [7]);
});

Deno.test("RespDecoder.push() counts the depth anew for each reply", () => {
  const { replies, error } = decode([bytes(`${deepest}:7\r\n`.repeat(3))]);
  assertEquals(error, undefined);
  assertEquals(replies.length, 3);
});

for (
  const [name, pieces] of [
    ["whole", (stream: Uint8Array) => [stream]],
    ["cut behind the type", (stream: Uint8Array) => cut(stream, [1])],
    ["cut before the CR", (stream: Uint8Array) => cut(stream, [stream.length - 2])],
    ["cut before the LF", (stream: Uint8Array) => cut(stream, [stream.length - 1])],
  ] as const
) {
  Deno.test(`RespDecoder.push() reads a line of just the limit, ${name}`, () => {
    const text = "x".repeat(LINE_BYTES_MAX - 1); // with its type as long as a line may be
    const { replies, error } = decode(pieces(bytes(`+${text}\r\n`)));
    assertEquals(error?.message, undefined);
    assert(replies[0] === text);
  });
}
