/**
 * The decoder against hostile bytes: valid replies that are mutated with the grammar in mind, so
 * that most of them go wrong deep inside. Streams that took a path of their own are kept in
 * `decoder_test.ts`.
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { bytes, cut, decode, type Decoded } from "../../support/decoding.ts";

const SEED = 90_210;
const RUNS = 3_000;
/** A secret in many of the streams; no error may show it. */
const SECRET = "hunter2hunter2";

/**
 * A valid reply: its bytes as a string of one character each, which mutations cut and join more
 * easily; and its value.
 */
interface Sample {
  readonly wire: string;
  readonly value: unknown;
}

const latin1 = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
const toBytes = (latin1: string) =>
  new Uint8Array(latin1.length).map((_, index) => latin1.charCodeAt(index));

const line = fc.oneof(
  fc.constantFrom("OK", "PONG", "", SECRET),
  fc.string({ unit: fc.constantFrom(..."aZ0é€😀\ufeff\0$:") }),
)
  .map((text) => text.replaceAll(/[\r\n]/gu, ""));
const bulk = fc.oneof(
  fc.constantFrom(SECRET, "", "\r\n", "$5\r\nhello\r\n", "*1\r\n", "\0\xff\r", "x".repeat(300)),
  fc.uint8Array({ maxLength: 40, size: "max" }).map(latin1),
);
const integer = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.maxSafeInteger(),
);

const { reply: sample } = fc.letrec<{ reply: Sample }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom("$-1\r\n", "*-1\r\n").map((wire): Sample => ({ wire, value: null })),
    line.map((text): Sample => ({ wire: `+${latin1(bytes(text))}\r\n`, value: text })),
    fc.constantFrom("ERR no", `WRONGPASS ${SECRET}`, "NOSCRIPT", "").map((error): Sample => ({
      wire: `-${error}\r\n`,
      value: { error, prefix: error.split(" ")[0] },
    })),
    integer.map((integer): Sample => ({
      wire: `:${integer}\r\n`,
      value: Number.isSafeInteger(Number(integer)) ? Number(integer) : integer,
    })),
    bulk.map((bulk): Sample => ({ wire: `$${bulk.length}\r\n${bulk}\r\n`, value: toBytes(bulk) })),
    fc.array(tie("reply"), { maxLength: 4 }).map((samples): Sample => ({
      wire: `*${samples.length}\r\n${samples.map(({ wire }) => wire).join("")}`,
      value: samples.map(({ value }) => value),
    })),
  ),
}));
const samples = fc.array(sample, { minLength: 1, maxLength: 6 });
const places = fc.array(fc.nat(), { maxLength: 12, size: "max" });

/** One way to spoil a stream; `at` is anywhere in it. */
type Mutation = (stream: string, at: number) => string;

const replaced = (stream: string, at: number, text: string) =>
  stream.slice(0, at) + text + stream.slice(at + 1);
const inserted = (text: string): Mutation => (stream, at) =>
  stream.slice(0, at) + text + stream.slice(at);

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
  // Replaces the first length or integer behind `at`.
  fc.constantFrom(
    ..."0 1 2 7 -1 -2 00 +1 1.5 0x1 1048576 1048577 65536 65537 536870912 536870913".split(" "),
    ..."9223372036854775807 9223372036854775808 -9223372036854775809".split(" "),
    "9".repeat(70_000),
    "",
  ).map((number): Mutation => (stream, at) => {
    return stream.slice(0, at) + stream.slice(at).replace(/([$*:])-?\d+/u, `$1${number}`);
  }),
  fc.constantFrom("\n", "\r", "\r\r\n", "\n\r", "").map((end): Mutation => (stream, at) => {
    return stream.slice(0, at) + stream.slice(at).replace("\r\n", end);
  }),
  fc.integer({ min: 1, max: 40 }).map((depth) => inserted("*1\r\n".repeat(depth))),
  fc.constantFrom(65_535, 65_536, 65_537).map((length) => inserted("+" + "x".repeat(length))),
);

const hostile = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(
      samples,
      fc.array(fc.tuple(mutation, fc.nat()), { minLength: 1, maxLength: 4 }),
    )
      .map(([samples, mutations]) =>
        mutations.reduce(
          (stream, [mutate, at]) => mutate(stream, at % (stream.length + 1)),
          samples.map(({ wire }) => wire).join(""),
        )
      ),
  },
  {
    weight: 1,
    arbitrary: fc.string({
      unit: fc.constantFrom(..."+-:$*\r\n0129\xff"),
      maxLength: 60,
      size: "max",
    }),
  },
);

/** Decodes a stream in pieces. */
function decodeCut(stream: string, places: readonly number[]): Decoded {
  return decode(cut(toBytes(stream), places.map((place) => place % (stream.length + 1))));
}

Deno.test("RespDecoder.push() reads any replies in any split, each as soon as it is complete", () => {
  fc.assert(
    fc.property(samples, places, fc.nat(), (samples, places, end) => {
      const stream = samples.map(({ wire }) => wire).join("");
      const values = samples.map(({ value }) => value);
      assertEquals(decodeCut(stream, places), { replies: values, error: undefined, idle: true });
      const cutOff = decodeCut(stream.slice(0, end % stream.length), places);
      const lengths = samples.map((_, index) =>
        samples.slice(0, index + 1).reduce((length, { wire }) => length + wire.length, 0)
      );
      const complete = lengths.filter((length) => length <= end % stream.length).length;
      assertEquals([cutOff.replies, cutOff.error], [values.slice(0, complete), undefined]);
    }),
    { seed: SEED, numRuns: 500 },
  );
});

Deno.test("RespDecoder.push() reads the same from mutated replies in any split, or throws a ProtocolError", () => {
  let [broken, read] = [0, 0];
  fc.assert(
    fc.property(hostile, places, (stream, places) => {
      const whole = decodeCut(stream, []);
      assertEquals(decodeCut(stream, places), whole);
      assertEquals(whole.error?.includes(SECRET) ?? false, false);
      if (whole.error !== undefined) broken++;
      if (whole.replies.length > 0) read++;
    }),
    { seed: SEED, numRuns: RUNS },
  );
  // Most must reach the inside, or the mutations are too coarse: some are refused, some of them
  // late.
  assert(broken > RUNS / 4 && broken < RUNS, `${broken} of ${RUNS} streams were refused`);
  assert(read > RUNS / 4, `${read} of ${RUNS} streams had a reply`);
});

Deno.test("RespDecoder.push() reads the replies before the first mutation as if there were none", () => {
  fc.assert(
    fc.property(samples, hostile, (samples, rest) => {
      const { replies } = decodeCut(samples.map(({ wire }) => wire).join("") + rest, []);
      assertEquals(replies.slice(0, samples.length), samples.map(({ value }) => value));
    }),
    { seed: SEED, numRuns: 1_000 },
  );
});
