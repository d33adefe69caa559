import { assert, assertEquals, assertLess, assertStrictEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  ARRAY_LENGTH_MAX,
  BULK_BYTES_MAX,
  LINE_BYTES_MAX,
  NESTING_MAX,
  RespDecoder,
} from "../../../src/redis/decoder.ts";
import { ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";

const SEED = 31_337;
const encoder = new TextEncoder();

function bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Cuts `stream` at the given places. */
function cut(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places, stream.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end));
}

/** What a decoder makes of `chunks`: the replies, and the error that ended it. */
function decode(chunks: readonly Uint8Array[]): { replies: RawReply[]; error?: ProtocolError } {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  try {
    for (const chunk of chunks) decoder.push(chunk);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { replies, error };
  }
  return { replies };
}

function byteByByte(stream: Uint8Array): Uint8Array[] {
  return Array.from(stream, (_, index) => stream.subarray(index, index + 1));
}

/** Errors as plain data, so that a value and an error of the same text differ. */
function plain(reply: RawReply): unknown {
  if (reply instanceof ReplyError) return { error: reply.message, prefix: reply.prefix };
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

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
    `$${BULK_BYTES_MAX + 1}\r\n`,
    "a length is more than 536870912",
  ],
  ["an absurd bulk length", `$${"9".repeat(400)}\r\n`, "a length is more than 536870912"],
  ["an array length of -2", "*-2\r\n", "a number has a byte that is no digit"],
  [
    "an array length above the limit",
    `*${ARRAY_LENGTH_MAX + 1}\r\n`,
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

/** A reply and its bytes. */
interface Sample {
  wire: Uint8Array;
  value: unknown;
}

function join(...parts: (string | Uint8Array)[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [
    ...(typeof part === "string" ? bytes(part) : part),
  ]));
}

const lineText = fc.string({ unit: "binary" }).map((text) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes(text.replaceAll(/[\r\n]/gu, "")))
);

const { reply: anySample } = fc.letrec<{ reply: Sample }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 4 },
    fc.uint8Array({ maxLength: 40 }).map((bulk): Sample => ({
      wire: join(`$${bulk.length}\r\n`, bulk, "\r\n"),
      value: new Uint8Array(bulk),
    })),
    lineText.map((text): Sample => ({ wire: bytes(`+${text}\r\n`), value: text })),
    fc.constantFrom("ERR no", "NOSCRIPT No matching script", "WRONGTYPE").map((text): Sample => ({
      wire: bytes(`-${text}\r\n`),
      value: { error: text, prefix: text.split(" ")[0] },
    })),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((integer): Sample => ({
      wire: bytes(`:${integer}\r\n`),
      value: Number.isSafeInteger(Number(integer)) ? Number(integer) : integer,
    })),
    fc.maxSafeInteger().map((integer): Sample => ({
      wire: bytes(`:${integer}\r\n`),
      value: integer,
    })),
    fc.constantFrom("$-1\r\n", "*-1\r\n").map((text): Sample => ({
      wire: bytes(text),
      value: null,
    })),
    fc.array(tie("reply"), { maxLength: 4 }).map((samples): Sample => ({
      wire: join(`*${samples.length}\r\n`, ...samples.map(({ wire }) => wire)),
      value: samples.map(({ value }) => value),
    })),
  ),
}));

Deno.test("RespDecoder.push() reads any replies in any split", () => {
  fc.assert(
    fc.property(
      fc.array(anySample, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (samples, places) => {
        const stream = join(...samples.map(({ wire }) => wire));
        const chunks = cut(stream, places.map((place) => place % (stream.length + 1)));
        const { replies, error } = decode(chunks);
        assertEquals(error, undefined);
        assertEquals(replies.map(plain), samples.map(({ value }) => value));
      },
    ),
    { seed: SEED, numRuns: 500 },
  );
});

Deno.test("RespDecoder.push() makes the same of any bytes in any split", () => {
  const byte = fc.oneof(
    fc.constantFrom(...bytes("+-:$*\r\n0129")),
    fc.integer({ min: 0, max: 255 }),
  );
  fc.assert(
    fc.property(
      fc.array(byte, { maxLength: 60 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (garbage, places) => {
        const stream = new Uint8Array(garbage);
        const whole = decode([stream]);
        const split = decode(cut(stream, places.map((place) => place % (stream.length + 1))));
        assertEquals(split.replies.map(plain), whole.replies.map(plain));
        assertEquals(split.error?.message, whole.error?.message);
      },
    ),
    { seed: SEED, numRuns: 2_000 },
  );
});

Deno.test("RespDecoder.push() reads the replies in front of a cut-off stream and waits for the rest", () => {
  fc.assert(
    fc.property(fc.array(anySample, { minLength: 1, maxLength: 4 }), fc.nat(), (samples, place) => {
      const stream = join(...samples.map(({ wire }) => wire));
      const { replies, error } = decode([stream.subarray(0, place % stream.length)]);
      assertEquals(error, undefined);
      assertEquals(replies.map(plain), samples.slice(0, replies.length).map(({ value }) => value));
      assertLess(replies.length, samples.length);
    }),
    { seed: SEED },
  );
});

/** Bytes that are copied while one bulk string of `size` bytes comes in chunks of `chunkSize`. */
function bytesCopied(size: number, chunkSize: number): number {
  const chunk = new Uint8Array(chunkSize).fill(120);
  const decoder = new RespDecoder(() => {});
  const set = Uint8Array.prototype.set;
  let copied = 0;
  Uint8Array.prototype.set = function (source: ArrayLike<number>, offset?: number) {
    copied += source.length;
    set.call(this, source, offset);
  };
  try {
    decoder.push(bytes(`$${size}\r\n`));
    for (let sent = 0; sent < size; sent += chunkSize) decoder.push(chunk);
    decoder.push(bytes("\r\n"));
  } finally {
    Uint8Array.prototype.set = set;
  }
  assertEquals(decoder.idle, true);
  return copied;
}

Deno.test("RespDecoder.push() copies each byte of a large bulk a bounded number of times", () => {
  for (const size of [2 ** 18, 2 ** 20, 2 ** 22]) {
    assertLess(bytesCopied(size, 1024) / size, 3.5);
  }
});

/** Reads of single bytes while `stream` comes byte by byte; the decoder looks at bytes by index. */
function bytesLookedAt(stream: Uint8Array): number {
  let looked = 0;
  const decoder = new RespDecoder(() => {});
  for (const chunk of byteByByte(stream)) {
    decoder.push(
      new Proxy(chunk, {
        get(target, key) {
          if (typeof key === "string" && /^\d+$/u.test(key)) looked++;
          const value = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }),
      1,
    );
  }
  return looked;
}

Deno.test("RespDecoder.push() looks at each byte of a long line a bounded number of times", () => {
  for (const size of [1_000, 10_000, 60_000]) {
    const looked = bytesLookedAt(bytes(`+${"x".repeat(size)}\r\n`));
    assertLess(looked / size, 4);
    assert(looked >= size);
  }
});

Deno.test("RespDecoder.push() believes no length before the bytes are there", () => {
  const before = Uint8Array;
  let largest = 0;
  globalThis.Uint8Array = new Proxy(before, {
    construct(target, args, newTarget) {
      if (typeof args[0] === "number") largest = Math.max(largest, args[0]);
      return Reflect.construct(target, args, newTarget);
    },
  });
  try {
    new RespDecoder(() => {}).push(bytes(`$${BULK_BYTES_MAX}\r\nabc`));
  } finally {
    globalThis.Uint8Array = before;
  }
  assertLess(largest, 2 ** 20);
});
