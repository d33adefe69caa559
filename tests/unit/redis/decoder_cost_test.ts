import { assertEquals, assertLess } from "@std/assert";
import { LINE_BYTES_MAX, REPLY_BYTES_MAX, RespDecoder } from "../../../src/redis/decoder.ts";
import { byteByByte, bytes } from "../../support/decoding.ts";
import { assertGrowth } from "../../support/growth.ts";

/** How many times as long the longer stream of each pair is. */
const FACTOR = 16;
/** How many times as long it may take: work that grows with the square of the length would take 256 times as long. */
const TIMES_MAX = 80;

/** Streams whose pieces a decoder must not look at again for each further piece, by how long they are. */
const STREAMS: Record<string, { length: number; chunks(length: number): Uint8Array[] }> = {
  "a bulk string in small chunks": {
    length: 2 ** 18,
    chunks(length) {
      const chunk = new Uint8Array(1_024).fill(120);
      const body: Uint8Array[] = Array(length / chunk.length).fill(chunk);
      return [bytes(`$${length}\r\n`), ...body, bytes("\r\n")];
    },
  },
  "a line byte by byte": {
    length: LINE_BYTES_MAX / FACTOR / 2,
    chunks: (length) => byteByByte(bytes(`+${"x".repeat(length)}\r\n`)),
  },
  "an array in small chunks": {
    length: 2_000,
    chunks: (length) => [bytes(`*${length}\r\n`), ...Array(length).fill(bytes(":1\r\n"))],
  },
  "an array of errors": {
    length: 500,
    chunks: (length) => [bytes(`*${length}\r\n${"-ERR no\r\n".repeat(length)}`)],
  },
  "replies in one chunk": {
    length: 2_000,
    chunks: (length) => [bytes("$1\r\na\r\n".repeat(length))],
  },
};

/** How long decoding `chunks` takes, in milliseconds. */
function decodeMs(chunks: readonly Uint8Array[]): number {
  let replies = 0;
  const decoder = new RespDecoder(() => replies++);
  const startMs = performance.now();
  for (const chunk of chunks) decoder.push(chunk);
  const tookMs = performance.now() - startMs;
  assertEquals([decoder.idle, replies > 0], [true, true]);
  return tookMs;
}

for (const [what, { length, chunks }] of Object.entries(STREAMS)) {
  Deno.test(`RespDecoder.push() takes time in proportion to the length of ${what}`, () => {
    const short = chunks(length), long = chunks(length * FACTOR);
    assertGrowth(TIMES_MAX, () => decodeMs(short), () => decodeMs(long));
  });
}

Deno.test("RespDecoder.push() believes no length before the bytes are there", () => {
  const before = Deno.memoryUsage().external;
  const decoder = new RespDecoder(() => {});
  decoder.push(bytes(`$${REPLY_BYTES_MAX - 100}\r\nabc`));
  assertLess(Deno.memoryUsage().external - before, 2 ** 24);
  assertEquals(decoder.idle, false);
});
