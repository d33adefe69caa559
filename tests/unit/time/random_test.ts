import { assert, assertEquals } from "@std/assert";
import { systemRandom } from "../../../src/time/random.ts";

Deno.test("systemRandom.value() uses every bit of the runtime's generator once", () => {
  const filled: number[] = [];
  const original = crypto.getRandomValues;
  const counting = <T extends ArrayBufferView>(array: T) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    bytes.forEach((_, index) => bytes[index] = (filled.length + index) % 251);
    filled.push(...bytes);
    return array;
  };
  Object.defineProperty(crypto, "getRandomValues", { value: counting, configurable: true });
  let hex = "";
  try {
    // What is left of the bytes drawn before goes first.
    for (let drawn = 0; filled.length === 0; drawn++) {
      hex = systemRandom.value();
      assert(drawn < 10_000);
    }
    while (hex.length < filled.length * 2) hex += systemRandom.value();
  } finally {
    Object.defineProperty(crypto, "getRandomValues", { value: original, configurable: true });
  }
  assertEquals(hex, filled.map((byte) => byte.toString(16).padStart(2, "0")).join(""));
});

Deno.test("systemRandom.fraction() is at least 0 and less than 1", () => {
  for (let times = 0; times < 1_000; times++) {
    const fraction = systemRandom.fraction();
    assert(fraction >= 0 && fraction < 1);
  }
});
