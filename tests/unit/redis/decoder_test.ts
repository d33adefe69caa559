import { assertEquals } from "@std/assert";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { byteByByte, bytes, cut, decode, plain } from "../../support/decoding.ts";

const READABLE: readonly (readonly [name: string, stream: string, replies: unknown[]])[] = [
  ["a simple string", "+PONG\r\n", ["PONG"]],
  ["OK", "+OK\r\n", ["OK"]],
  ["an empty simple string", "+\r\n", [""]],
  ["a multi-byte simple string", "+né😀\r\n", ["né😀"]],
  ["a simple string that begins with a byte order mark", "+\ufeffx\r\n", ["\ufeffx"]],
  ["an error", "-NOAUTH Authentication required.\r\n", [
    { error: "NOAUTH Authentication required.", prefix: "NOAUTH" },
  ]],
  ["an error of one word", "-ERR\r\n", [{ error: "ERR", prefix: "ERR" }]],
  ["an empty error", "-\r\n", [{ error: "", prefix: "" }]],
  ["0", ":0\r\n", [0]],
  ["a negative integer", ":-17\r\n", [-17]],
  ["an integer with a plus", ":+5\r\n", [5]],
  ["minus zero", ":-0\r\n", [0]],
  ["leading zeros", ":0000000000000000000007\r\n", [7]],
  ["2^53 - 1", ":9007199254740991\r\n", [Number.MAX_SAFE_INTEGER]],
  ["2^53", ":9007199254740992\r\n", [2n ** 53n]],
  ["2^53 + 1", ":9007199254740993\r\n", [2n ** 53n + 1n]],
  ["-(2^53 - 1)", ":-9007199254740991\r\n", [Number.MIN_SAFE_INTEGER]],
  ["-(2^53 + 1)", ":-9007199254740993\r\n", [-(2n ** 53n) - 1n]],
  ["the greatest integer of 64 bits", ":9223372036854775807\r\n", [2n ** 63n - 1n]],
  ["the smallest integer of 64 bits", ":-9223372036854775808\r\n", [-(2n ** 63n)]],
  ["a bulk string", "$5\r\nhello\r\n", [bytes("hello")]],
  ["an empty bulk string", "$0\r\n\r\n", [bytes("")]],
  ["a null bulk string", "$-1\r\n", [null]],
  ["a bulk string of CR and LF", "$4\r\n\r\n\n\r\r\n", [bytes("\r\n\n\r")]],
  ["a bulk string of NUL", "$3\r\n\0\0\0\r\n", [bytes("\0\0\0")]],
  ["a bulk string that looks like an integer", "$4\r\n:5\r\n\r\n", [bytes(":5\r\n")]],
  ["a bulk string that looks like an error", "$6\r\n-foo\r\n\r\n", [bytes("-foo\r\n")]],
  ["a bulk string that looks like an array", "$4\r\n*2\r\n\r\n", [bytes("*2\r\n")]],
  ["a multi-byte bulk string by its bytes", "$6\r\né😀\r\n", [bytes("é😀")]],
  ["an empty array", "*0\r\n", [[]]],
  ["a null array", "*-1\r\n", [null]],
  ["an array of everything", "*6\r\n+a\r\n:1\r\n$1\r\nb\r\n$-1\r\n*0\r\n*-1\r\n", [
    ["a", 1, bytes("b"), null, [], null],
  ]],
  ["nested arrays", "*2\r\n*2\r\n*1\r\n:1\r\n:2\r\n:3\r\n", [[[[1], 2], 3]]],
  ["an error inside an array as a value", "*3\r\n:1\r\n-ERR no\r\n:2\r\n", [
    [1, { error: "ERR no", prefix: "ERR" }, 2],
  ]],
  ["replies one behind the other", "+a\r\n$-1\r\n:3\r\n*1\r\n$1\r\nx\r\n-E\r\n", [
    "a",
    null,
    3,
    [bytes("x")],
    { error: "E", prefix: "E" },
  ]],
];

for (const [name, stream, replies] of READABLE) {
  Deno.test(`RespDecoder.push() reads ${name}, whole and byte by byte`, () => {
    const whole = decode([bytes(stream)]);
    const bitten = decode(byteByByte(bytes(stream)));
    assertEquals(whole.error, undefined);
    assertEquals(whole.replies.map(plain), replies);
    assertEquals(bitten.error, undefined);
    assertEquals(bitten.replies.map(plain), replies);
  });
}

Deno.test("RespDecoder.push() keeps a partial bulk across chunks", () => {
  assertEquals(decode([bytes("$5\r\nhe"), bytes("l"), bytes("lo\r"), bytes("\n")]).replies, [
    bytes("hello"),
  ]);
});

Deno.test("RespDecoder.push() keeps no reference to the chunk", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  const chunk = bytes("$5\r\nhello\r\n$3\r\nab");
  decoder.push(chunk);
  chunk.fill(0);
  decoder.push(bytes("c\r\n"));
  assertEquals(replies, [bytes("hello"), bytes("abc")]);
});

Deno.test("RespDecoder.push() reads only the first `length` bytes of the chunk", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  decoder.push(bytes("+a\r\n+b\r\n?"), 4);
  assertEquals(replies, ["a"]);
});

Deno.test("RespDecoder.push() hands over a reply within the call that completes it", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  decoder.push(bytes("+a\r"));
  assertEquals(replies, []);
  decoder.push(bytes("\n"));
  assertEquals(replies, ["a"]);
});

for (
  const [inside, stream] of [
    ["a type", "+"],
    ["a line", "+OK"],
    ["the end of a line", "+OK\r"],
    ["a length", "$5"],
    ["a bulk string", "$5\r\nhel"],
    ["a bulk string of which nothing came", "$5\r\n"],
    ["the end of a bulk string", "$5\r\nhello\r"],
    ["the end of an empty bulk string", "$0\r\n"],
    ["an array", "*2\r\n:1\r\n"],
    ["an array of which nothing came", "*1\r\n"],
    ["a nested array", "*2\r\n*1\r\n:1\r\n"],
  ] as const
) {
  Deno.test(`RespDecoder.idle is false inside ${inside}`, () => {
    const decoder = new RespDecoder(() => {});
    decoder.push(bytes(stream));
    assertEquals(decoder.idle, false);
  });
}

Deno.test("RespDecoder.idle is true between replies", () => {
  const decoder = new RespDecoder(() => {});
  assertEquals(decoder.idle, true);
  for (const [, stream] of READABLE) {
    decoder.push(bytes(stream));
    assertEquals(decoder.idle, true);
  }
});

Deno.test("RespDecoder.push() reads every readable stream alike, cut anywhere twice", () => {
  for (const [name, text, replies] of READABLE) {
    const stream = bytes(text);
    for (let first = 0; first <= stream.length; first++) {
      for (let second = first; second <= stream.length; second++) {
        const { replies: read, error } = decode(cut(stream, [first, second]));
        assertEquals(error, undefined, name);
        assertEquals(read.map(plain), replies, `${name} cut at ${first} and ${second}`);
      }
    }
  }
});
