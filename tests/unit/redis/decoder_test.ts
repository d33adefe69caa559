import { assert, assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import {
  LINE_BYTES_MAX,
  NESTING_MAX,
  REPLY_BYTES_MAX,
  REPLY_ELEMENTS_MAX,
  RespDecoder,
} from "../../../src/redis/decoder.ts";
import { ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { byteByByte, bytes, cut, decode, plain } from "../../support/decoding.ts";
import { assertProportional, FACTOR } from "../../support/growth.ts";

const deepest = "*1\r\n".repeat(NESTING_MAX);
const longest = "x".repeat(LINE_BYTES_MAX - 1); // with its type as long as a line may be
const error = (error: string) => ({ error, prefix: error.split(" ")[0] });

const READABLE: Readonly<Record<string, readonly [stream: string, ...replies: unknown[]]>> = {
  "a simple string": ["+PONG\r\n", "PONG"],
  "OK": ["+OK\r\n", "OK"],
  "an empty simple string": ["+\r\n", ""],
  "a multi-byte simple string": ["+né😀\r\n", "né😀"],
  "a simple string that begins with a byte order mark": ["+\ufeffx\r\n", "\ufeffx"],
  "a line of just the limit": [`+${longest}\r\n`, longest],
  "an error": ["-NOAUTH Authentication required.\r\n", error("NOAUTH Authentication required.")],
  "an error of one word": ["-ERR\r\n", error("ERR")],
  "an empty error": ["-\r\n", error("")],
  "an error with a NUL": ["-ERR a\0b\r\n", error("ERR a\\u{0}b")],
  "0": [":0\r\n", 0],
  "a negative integer": [":-17\r\n", -17],
  "an integer with a plus": [":+5\r\n", 5],
  "minus zero": [":-0\r\n", 0],
  "leading zeros": [`:${"0".repeat(60_000)}7\r\n`, 7],
  "2^53 - 1": [":9007199254740991\r\n", Number.MAX_SAFE_INTEGER],
  "2^53": [":9007199254740992\r\n", 2n ** 53n],
  "2^53 + 1": [":9007199254740993\r\n", 2n ** 53n + 1n],
  "-(2^53 - 1)": [":-9007199254740991\r\n", Number.MIN_SAFE_INTEGER],
  "-(2^53 + 1)": [":-9007199254740993\r\n", -(2n ** 53n) - 1n],
  "the greatest integer of 64 bits": [":9223372036854775807\r\n", 2n ** 63n - 1n],
  "the smallest integer of 64 bits": [":-9223372036854775808\r\n", -(2n ** 63n)],
  "a bulk string": ["$5\r\nhello\r\n", bytes("hello")],
  "an empty bulk string": ["$0\r\n\r\n", bytes("")],
  "a null bulk string": ["$-1\r\n", null],
  "a bulk string of CR and LF": ["$4\r\n\r\n\n\r\r\n", bytes("\r\n\n\r")],
  "a bulk string of NUL": ["$3\r\n\0\0\0\r\n", bytes("\0\0\0")],
  "a bulk string that looks like an integer": ["$4\r\n:5\r\n\r\n", bytes(":5\r\n")],
  "a bulk string that looks like an error": ["$6\r\n-foo\r\n\r\n", bytes("-foo\r\n")],
  "a bulk string that looks like an array": ["$4\r\n*2\r\n\r\n", bytes("*2\r\n")],
  "a multi-byte bulk string by its bytes": ["$6\r\né😀\r\n", bytes("é😀")],
  "an empty array": ["*0\r\n", []],
  "a null array": ["*-1\r\n", null],
  "an array of everything": [
    "*7\r\n+a\r\n:1\r\n$1\r\nb\r\n$-1\r\n*0\r\n*-1\r\n-ERR no\r\n",
    ["a", 1, bytes("b"), null, [], null, error("ERR no")],
  ],
  "nested arrays": ["*2\r\n*2\r\n*1\r\n:1\r\n:2\r\n:3\r\n", [[[1], 2], 3]],
  "arrays as deep as the limit, one behind another": [
    `${deepest}*0\r\n`.repeat(2),
    ...Array(2).fill(JSON.parse("[".repeat(NESTING_MAX + 1) + "]".repeat(NESTING_MAX + 1))),
  ],
  "replies one behind another": [
    "+a\r\n$-1\r\n:3\r\n*1\r\n$1\r\nx\r\n-E\r\n",
    ...["a", null, 3, [bytes("x")], error("E")],
  ],
  "a null array and an error": ["*-1\r\n-1\r\n", null, error("1")],
};

for (const [what, [text, ...replies]] of Object.entries(READABLE)) {
  Deno.test(`RespDecoder.push() reads ${what}, whole, byte by byte and cut anywhere twice`, () => {
    const stream = bytes(text);
    const expected = { replies, error: undefined, idle: true };
    assertEquals(decode(byteByByte(stream)), expected);
    const places = Array.from({ length: Math.min(stream.length, 50) + 1 }, (_, place) => place);
    for (const first of [...places, stream.length - 2, stream.length - 1]) {
      for (const second of places) assertEquals(decode(cut(stream, [first, second])), expected);
    }
    if (replies.length > 1) return;
    for (const end of places.slice(1, stream.length)) {
      assertEquals(decode([stream.subarray(0, end)]), {
        ...expected,
        replies: [],
        idle: end === stream.length,
      });
    }
  });
}

const SECRET = "hunter2hunter2";
const NO_END = "a line does not end in CR LF";
const CR_INSIDE = "a line has a CR in its middle";
const NO_DIGITS = "a number has no digits";
const NO_DIGIT = "a number has a byte that is not a digit";
const BITS = "an integer has more than 64 bits";
const BYTES = `a length is more than ${REPLY_BYTES_MAX}`;
const ELEMENTS = `a length is more than ${REPLY_ELEMENTS_MAX}`;
const BULK_END = "a bulk string does not end in CR LF";
const LINE = `a line is longer than ${LINE_BYTES_MAX} bytes`;
const NESTED = `arrays are nested deeper than ${NESTING_MAX}`;

const MALFORMED: Readonly<Record<string, readonly [stream: string, reason: string]>> = {
  "an unknown type": ["!x\r\n", "a reply begins with byte 33"],
  "a RESP3 map": ["%1\r\n", "a reply begins with byte 37"],
  "HTTP": ["HTTP/1.1 400 Bad Request\r\n", "a reply begins with byte 72"],
  "an empty line": ["\r\n", NO_END],
  "a line that ends in LF alone": ["+OK\n", NO_END],
  "a line that ends in LF CR LF": ["+OK\n\r\n", NO_END],
  "a CR in the middle of a line": ["+O\rK\r\n", CR_INSIDE],
  "a line that ends in CR CR LF": ["+OK\r\r\n", CR_INSIDE],
  "a CR in the middle of an error": ["-O\rK\r\n", CR_INSIDE],
  "an integer without digits": [":\r\n", NO_DIGITS],
  "an integer of a sign alone": [":-\r\n", NO_DIGITS],
  "an integer with a letter": [":1x\r\n", NO_DIGIT],
  "an integer with a fraction": [":1.5\r\n", NO_DIGIT],
  "an integer with two signs": [":--1\r\n", NO_DIGIT],
  "an integer with a space": [": 1\r\n", NO_DIGIT],
  "an integer of more than 64 bits": [":9223372036854775808\r\n", BITS],
  "a negative one of more than 64 bits": [":-9223372036854775809\r\n", BITS],
  "a bulk length without digits": ["$\r\n", NO_DIGITS],
  "a bulk length of -2": ["$-2\r\n", NO_DIGIT],
  "a bulk length with a plus": ["$+1\r\n", NO_DIGIT],
  "a bulk length in hexadecimal": ["$0x1\r\n", NO_DIGIT],
  "a bulk length above the limit": [`$${REPLY_BYTES_MAX + 1}\r\n`, BYTES],
  "an absurd bulk length": [`$${"9".repeat(400)}\r\n`, BYTES],
  "an array length of -2": ["*-2\r\n", NO_DIGIT],
  "an array length above the limit": [`*${REPLY_ELEMENTS_MAX + 1}\r\n`, ELEMENTS],
  "an absurd array length": [`*${"9".repeat(30)}\r\n`, ELEMENTS],
  "a bulk string that is longer than it says": ["$1\r\nab\r\n", BULK_END],
  "a bulk string that is shorter": ["$3\r\nOK\r\n+OK\r\n", BULK_END],
  "a bulk string with LF for CR LF": ["$1\r\na\n\n", BULK_END],
  "a bulk string with CR CR for CR LF": ["$1\r\na\r\r", BULK_END],
  "a secret in a bulk string": [`$6\r\n${SECRET}`, BULK_END],
  "a secret in an unknown type": [
    `*2\r\n+${SECRET}\r\n!${SECRET}\r\n`,
    "a reply begins with byte 33",
  ],
  "garbage inside an array": ["*2\r\n:1\r\n?\r\n", "a reply begins with byte 63"],
  "nesting above the limit": [`${deepest}*1\r\n`, NESTED],
  "nested arrays of many elements": [`${"*32768\r\n".repeat(NESTING_MAX + 1)}:1\r\n`, NESTED],
  "nested arrays of more elements than a reply may have": [
    "*2\r\n*524288\r\n*524287\r\n",
    `a reply has more than ${REPLY_ELEMENTS_MAX} elements`,
  ],
  "a line above the limit": [`+${longest}x\r\n`, LINE],
  "a line above the limit whose end never comes": [`+${longest}xx`, LINE],
  "a length as long as a line": [`*1\r\n$${"9".repeat(70_000)}\r\n`, LINE],
};

for (const [what, [stream, reason]] of Object.entries(MALFORMED)) {
  Deno.test(`RespDecoder.push() refuses ${what}, whole and byte by byte`, () => {
    const expected = { replies: ["a", 1], error: reason, idle: undefined };
    for (const split of [byteByByte, (bytes: Uint8Array) => [bytes]]) {
      assertEquals(decode(split(bytes(`+a\r\n:1\r\n${stream}`))), expected);
    }
  });
}

// Limits of one reply

const LIMITS = { replyBytesMax: 100, replyElementsMax: 10 };
const x = (length: number) => "x".repeat(length);
const integers = (length: number) => `*${length}\r\n${":1\r\n".repeat(length)}`;

const FITTING: Readonly<Record<string, string>> = {
  "ten elements": integers(10),
  "ten elements in two arrays": `*2\r\n${integers(4)}${integers(4)}`,
  "a bulk string of just as many bytes": `$100\r\n${x(100)}\r\n`,
  "a bulk string inside an array": `*1\r\n$80\r\n${x(80)}\r\n`,
  "as much again in the next reply": integers(10).repeat(5),
  "one bulk string after another": `$100\r\n${x(100)}\r\n`.repeat(5),
};

const EXCEEDING: Readonly<Record<string, readonly [stream: string, reason: string]>> = {
  "an array of more elements": ["*11\r\n", "a length is more than 10"],
  "more elements in nested arrays": ["*2\r\n*9\r\n", "a reply has more than 10 elements"],
  "more elements in arrays side by side": [
    `*3\r\n${integers(4)}*4\r\n`,
    "a reply has more than 10 elements",
  ],
  "more elements as deep as arrays may be": [
    "*1\r\n".repeat(11),
    "a reply has more than 10 elements",
  ],
  "a bulk string of more bytes": ["$101\r\n", "a length is more than 100"],
  "more bytes in two bulk strings": [
    `*2\r\n$60\r\n${x(60)}\r\n$60\r\n`,
    "a reply has more than 100 bytes",
  ],
  "more bytes in lines": [`*3\r\n${`+${x(40)}\r\n`.repeat(3)}`, "a reply has more than 100 bytes"],
  "more bytes in errors": [`*3\r\n${`-${x(40)}\r\n`.repeat(3)}`, "a reply has more than 100 bytes"],
};

for (const [what, stream] of Object.entries(FITTING)) {
  Deno.test(`RespDecoder.push() with limits reads ${what}, whole and byte by byte`, () => {
    const all = decode([bytes(stream)]);
    assertEquals([all.error, all.idle], [undefined, true]);
    assertEquals(decode([bytes(stream)], LIMITS), all);
    assertEquals(decode(byteByByte(bytes(stream)), LIMITS), all);
  });
}

for (const [what, [stream, reason]] of Object.entries(EXCEEDING)) {
  Deno.test(`RespDecoder.push() with limits refuses ${what}, whole and byte by byte, before it has come`, () => {
    const expected = { replies: ["OK"], error: reason, idle: undefined };
    assertEquals(decode([bytes(`+OK\r\n${stream}`)], LIMITS), expected);
    assertEquals(decode(byteByByte(bytes(`+OK\r\n${stream}`)), LIMITS), expected);
  });
}

for (
  const [what, stream] of [
    ["a bulk string", `$${REPLY_BYTES_MAX - 100}\r\nabc`],
    ["nested arrays", `${"*32768\r\n".repeat(NESTING_MAX)}:1\r\n`],
  ]
) {
  Deno.test(`RespDecoder.push() allocates nothing for ${what} before its bytes have come`, () => {
    const before = Deno.memoryUsage();
    assertEquals(decode([bytes(stream)]), { replies: [], error: undefined, idle: false });
    const after = Deno.memoryUsage();
    assertLess(after.external + after.heapUsed - before.external - before.heapUsed, 2 ** 24);
  });
}

// Errors

Deno.test("RespDecoder.push() records no stack for an error, and leaves the recording of others as it was", () => {
  const limit = Error.stackTraceLimit;
  const replies: RawReply[] = [];
  new RespDecoder((reply) => replies.push(reply)).push(bytes("-ERR no\r\n*1\r\n-\r\n"));
  for (const error of replies.flat()) {
    assertInstanceOf(error, ReplyError);
    assertEquals(/^\s+at /mu.test(error.stack ?? ""), false);
  }
  assertEquals(replies.map(plain), [error("ERR no"), [error("")]]);
  assertEquals(Error.stackTraceLimit, limit);
  assertEquals(/^\s+at /mu.test(new ReplyError("ERR").stack!), true);
});

Deno.test("RespDecoder.push() shows no password in errors, and no control characters", () => {
  const stream = bytes(`-ERR ${SECRET}\x1b[31m\r\n*1\r\n-${SECRET} no\r\n`);
  const expected = [{ error: "ERR ***\\u{1b}[31m", prefix: "ERR" }, [error("*** no")]];
  assertEquals(decode([stream], { secrets: [SECRET] }).replies, expected);
});

// Chunks

Deno.test("RespDecoder.push() copies what it keeps, and reads only the first `length` bytes", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  const chunk = bytes("$5\r\nhello\r\n$3\r\nab?");
  decoder.push(chunk, chunk.length - 1);
  chunk.fill(0);
  decoder.push(bytes("c\r\n"));
  assertEquals(replies, [bytes("hello"), bytes("abc")]);
});

Deno.test("RespDecoder.stop() within a reply ends the decoding of the chunk", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => {
    replies.push(reply);
    decoder.stop();
  });
  decoder.push(bytes("+one\r\n+two\r\n?\r\n"));
  decoder.push(bytes("+three\r\n"));
  assertEquals(replies, ["one"]);
});

/** Streams whose pieces must not be looked at again for each further piece, by their length. */
const STREAMS: Record<string, readonly [length: number, chunks: (length: number) => Uint8Array[]]> =
  {
    "a bulk string in small chunks": [2 ** 18, (length) => {
      const body = Array(length / 1_024).fill(bytes(x(1_024)));
      return [bytes(`$${length}\r\n`), ...body, bytes("\r\n")];
    }],
    "a line byte by byte": [
      LINE_BYTES_MAX / FACTOR / 2,
      (length) => byteByByte(bytes(`+${x(length)}\r\n`)),
    ],
    "an array in small chunks": [
      2_000,
      (length) => [bytes(`*${length}\r\n`), ...Array(length).fill(bytes(":1\r\n"))],
    ],
    "an array of errors": [
      500,
      (length) => [bytes(`*${length}\r\n${"-ERR no\r\n".repeat(length)}`)],
    ],
    "replies in one chunk": [2_000, (length) => [bytes("$1\r\na\r\n".repeat(length))]],
  };

for (const [what, [length, chunks]] of Object.entries(STREAMS)) {
  Deno.test(`RespDecoder.push() takes time in proportion to the length of ${what}`, () => {
    assertProportional(length, (size) => {
      const pieces = chunks(size);
      let replies = 0;
      const decoder = new RespDecoder(() => replies++);
      const startMs = performance.now();
      for (const piece of pieces) decoder.push(piece);
      const tookMs = performance.now() - startMs;
      assert(replies > 0);
      return tookMs;
    });
  });
}
