import { assertEquals, assertLess } from "@std/assert";
import fc from "fast-check";
import { bytes, cut, decode, plain } from "../../support/decoding.ts";

const SEED = 31_337;

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
