import { assert, assertEquals, assertLess } from "@std/assert";
import { BULK_BYTES_MAX, RespDecoder } from "../../../src/redis/decoder.ts";
import { byteByByte, bytes } from "../../support/decoding.ts";

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
