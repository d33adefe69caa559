/**
 * The decoder against hostile bytes: valid replies that were mutated with the grammar in mind, so that most of them
 * go wrong deep inside. Seeds are fixed; {@linkcode SEEN} keeps streams that took a path of their own.
 */
import { assert, assertEquals, assertInstanceOf, assertLessOrEqual } from "@std/assert";
import fc from "fast-check";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import { ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";

const SEED = 90_210;
const RUNS = 3_000;
/** A secret that stands in many of the streams; no error may show it. */
const SECRET = "hunter2hunter2";
/** What a decoder may take for a bulk string before its bytes are there, and keep beside what came. */
const ALLOWANCE_BYTES = 2 * 64 * 1024;
/** What lies between bytes that came and bytes that are taken for them: buffers are doubled as they fill. */
const GROWTH = 4;

const encoder = new TextEncoder();

/** Bytes as a string of one character each, which mutations cut and join more easily. */
function toBytes(latin1: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(latin1, (character) => character.charCodeAt(0));
}

/** What came of a stream: comparable, whatever pieces it came in. */
interface Outcome {
  readonly replies: unknown[];
  readonly error: string | undefined;
  readonly idle: boolean | undefined;
  /** Bytes that were taken for buffers meanwhile. */
  readonly allocated: number;
}

function plain(reply: RawReply): unknown {
  if (reply instanceof ReplyError) return { error: reply.message };
  if (Array.isArray(reply)) return reply.map(plain);
  return reply instanceof Uint8Array ? { bulk: [...reply] } : reply;
}

/** Feeds a decoder to its end; whatever it throws but a `ProtocolError` fails the test. */
function feed(chunks: readonly Uint8Array[]): Outcome {
  const replies: unknown[] = [];
  const decoder = new RespDecoder((reply) => replies.push(plain(reply)));
  const allocations = new AllocationCount();
  let error: unknown;
  try {
    for (const chunk of chunks) decoder.push(chunk);
  } catch (thrown) {
    error = thrown;
  } finally {
    allocations.stop();
  }
  const { allocated } = allocations;
  if (error === undefined) return { replies, error, idle: decoder.idle, allocated };
  assertInstanceOf(error, ProtocolError);
  assertStaysBroken(decoder, replies, error);
  return { replies, error: error.message, idle: undefined, allocated };
}

/** After an error nothing is read any more, and the error stays the same. */
function assertStaysBroken(decoder: RespDecoder, replies: unknown[], error: ProtocolError): void {
  const before = replies.length;
  for (const text of ["+OK\r\n", "\r\n+OK\r\n", "", "$-1\r\n:1\r\n"]) {
    let again: unknown;
    try {
      decoder.push(encoder.encode(text));
    } catch (thrown) {
      again = thrown;
    }
    assert(again === error);
  }
  assertEquals(replies.length, before);
}

/** Counts the bytes of the buffers that are made by their length. */
class AllocationCount {
  allocated = 0;
  readonly #original = Uint8Array;

  constructor() {
    globalThis.Uint8Array = new Proxy(this.#original, {
      construct: (target, args, newTarget) => {
        if (typeof args[0] === "number") this.allocated += args[0];
        return Reflect.construct(target, args, newTarget);
      },
    });
  }

  stop(): void {
    globalThis.Uint8Array = this.#original;
  }
}

/** A valid reply, as the bytes it consists of. */
const { reply: validReply } = fc.letrec<{ reply: string }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(
      "+OK\r\n",
      "+PONG\r\n",
      "$-1\r\n",
      "*-1\r\n",
      "*0\r\n",
      "$0\r\n\r\n",
      ":-1\r\n",
    ),
    fc.constantFrom(`-ERR ${SECRET}\r\n`, `-WRONGPASS ${SECRET}\r\n`, "-\r\n", `+${SECRET}\r\n`),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((integer) => `:${integer}\r\n`),
    fc.constantFrom(SECRET, "", "\r\n", "$5\r\nhello\r\n", "*1\r\n", "\0\xff\r", "x".repeat(300))
      .map((bulk) => `$${bulk.length}\r\n${bulk}\r\n`),
    fc.array(tie("reply"), { maxLength: 4 })
      .map((items) => `*${items.length}\r\n${items.join("")}`),
  ),
}));

/** One way to spoil a stream; `at` is anywhere in it. */
type Mutation = (stream: string, at: number) => string;

const replaced = (stream: string, at: number, text: string) =>
  stream.slice(0, at) + text + stream.slice(at + 1);

/** Replaces the number of the first length or integer behind `at`. */
const renumbered = (number: string): Mutation => (stream, at) =>
  stream.slice(0, at) + stream.slice(at).replace(/([$*:])-?\d+/u, `$1${number}`);

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.nat(7).map((bit): Mutation => (stream, at) => {
    return replaced(stream, at, String.fromCharCode((stream.charCodeAt(at) || 0) ^ (1 << bit)));
  }),
  fc.constantFrom(..."+-:$*_#,(!=%~>|\r\n0 9\0\xff").map((byte): Mutation => (stream, at) => {
    return replaced(stream, at, byte);
  }),
  fc.nat(40).map((length): Mutation => (stream, at) => {
    return stream.slice(0, at) + stream.slice(at + length);
  }),
  fc.nat(40).map((length): Mutation => (stream, at) => {
    return stream.slice(0, at + length) + stream.slice(at);
  }),
  fc.constant<Mutation>((stream, at) => stream.slice(0, at)),
  fc.constant<Mutation>((stream, at) => stream.slice(at) + stream.slice(0, at)),
  fc.constantFrom(
    ..."0 1 2 7 -1 -2 00 +1 1.5 0x1 1048576 1048577 65536 65537 536870912 536870913".split(" "),
    ..."9223372036854775807 9223372036854775808 -9223372036854775809".split(" "),
    "9".repeat(70_000),
    "",
  ).map(renumbered),
  fc.constantFrom("\n", "\r", "\r\r\n", "\n\r", "").map((end): Mutation => (stream, at) => {
    return stream.slice(0, at) + stream.slice(at).replace("\r\n", end);
  }),
  fc.integer({ min: 1, max: 40 }).map((depth): Mutation => (stream, at) => {
    return stream.slice(0, at) + "*1\r\n".repeat(depth) + stream.slice(at);
  }),
  fc.constantFrom(65_535, 65_536, 65_537).map((length): Mutation => (stream, at) => {
    return stream.slice(0, at) + "+" + "x".repeat(length) + stream.slice(at);
  }),
);

const hostile = fc.tuple(
  fc.array(validReply, { minLength: 1, maxLength: 5 }),
  fc.array(fc.tuple(mutation, fc.nat()), { minLength: 1, maxLength: 4 }),
).map(([replies, mutations]) =>
  mutations.reduce(
    (stream, [mutate, at]) => mutate(stream, at % (stream.length + 1)),
    replies.join(""),
  )
);

/** Cuts a stream at some places. */
function cut(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = places.map((place) => place % (stream.length + 1)).sort((a, b) => a - b);
  return [...sorted, stream.length].map((end, index) =>
    stream.subarray(sorted[index - 1] ?? 0, end)
  );
}

function comparable(outcome: Outcome) {
  return { ...outcome, allocated: 0 };
}

/** All that must hold for any bytes in any pieces. */
function assertSound(latin1: string, places: readonly number[]): Outcome {
  const stream = toBytes(latin1);
  const whole = feed([stream]);
  const pieces = feed(cut(stream, places));
  assertEquals(comparable(pieces), comparable(whole));
  for (const { allocated, error } of [whole, pieces]) {
    assertLessOrEqual(allocated, GROWTH * stream.length + ALLOWANCE_BYTES);
    assertEquals(error?.includes(SECRET) ?? false, false);
    if (error) assert(error.startsWith("Cannot read reply as "), error);
  }
  return whole;
}

Deno.test("RespDecoder.push() makes the same of mutated replies in any split, in bounded memory, or a ProtocolError", () => {
  let [broken, read] = [0, 0];
  fc.assert(
    fc.property(hostile, fc.array(fc.nat(), { maxLength: 6 }), (stream, places) => {
      const { error, replies } = assertSound(stream, places);
      if (error !== undefined) broken++;
      if (replies.length > 0) read++;
    }),
    { seed: SEED, numRuns: RUNS },
  );
  // Most must reach the inside, or the mutations are too coarse: some are refused, some of them late.
  assert(broken > RUNS / 4 && broken < RUNS, `${broken} of ${RUNS} streams were refused`);
  assert(read > RUNS / 4, `${read} of ${RUNS} streams held a reply`);
});

Deno.test("RespDecoder.push() reads what stands in front of the first mutation as if there were none", () => {
  const valid = fc.array(validReply, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(valid, hostile, (replies, rest) => {
      const clean = feed([toBytes(replies.join(""))]);
      const spoilt = feed([toBytes(replies.join("") + rest)]);
      assertEquals(clean.error, undefined);
      assertEquals(spoilt.replies.slice(0, replies.length), clean.replies);
      assertEquals(clean.replies.length, replies.length);
    }),
    { seed: SEED, numRuns: 1_000 },
  );
});

/** Streams that mutations found: how many replies stand in each, and what ended it. */
const SEEN: readonly (readonly [stream: string, replies: number, error: string | undefined])[] = [
  ["*2\r\n$-1\r\n*-1\r\n", 1, undefined],
  ["*-1\r\n-1\r\n", 2, undefined],
  ["*3\r\n+OK\r\n", 0, undefined],
  ["$4\r\nOK\r\n", 0, undefined],
  ["$3\r\nOK\r\n+OK\r\n", 0, "a bulk string does not end in CR LF"],
  ["$4\r\nOK\r\n\r\n+OK\r\n", 2, undefined],
  ["$0\r\n\r\n\r\n", 1, "a line does not end in CR LF"],
  ["+OK\r\r\n", 0, "a line has a CR in its middle"],
  ["+OK\n\r\n", 0, "a line does not end in CR LF"],
  ["-ERR a\0b\r\n", 1, undefined],
  [":-\r\n", 0, "a number has no digits"],
  [`*1\r\n$${"9".repeat(70_000)}\r\n`, 0, "a line is longer than 65536 bytes"],
  [`:${"0".repeat(60_000)}7\r\n`, 1, undefined],
  [`${"*1\r\n".repeat(32)}*0\r\n`, 1, undefined],
  [`${"*1\r\n".repeat(32)}*1\r\n`, 0, "arrays are nested deeper than 32"],
  [`${"*32768\r\n".repeat(32)}:1\r\n`, 0, undefined],
  [`${"*32768\r\n".repeat(33)}:1\r\n`, 0, "arrays are nested deeper than 32"],
  ["*2\r\n*524288\r\n*524287\r\n", 0, "a reply has more than 1048576 elements"],
  [`$536870912\r\n${SECRET}`, 0, undefined],
  [`*2\r\n+${SECRET}\r\n!${SECRET}\r\n`, 0, "a reply begins with byte 33"],
];

for (const [index, [stream, replies, error]] of SEEN.entries()) {
  Deno.test(`RespDecoder.push() stays sound on the stream kept as number ${index + 1}`, () => {
    const places = Array.from({ length: Math.min(stream.length, 64) }, (_, place) => place);
    const outcome = assertSound(stream, places);
    assertEquals(outcome.replies.length, replies);
    assertEquals(outcome.error, error && `Cannot read reply as ${error}`);
  });
}
