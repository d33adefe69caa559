import { assertEquals } from "@std/assert";
import { sha1 } from "../../../src/testing/lua/sha1.ts";

Deno.test("sha1() hashes the examples of RFC 3174", () => {
  const sentence = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (
    const [text, digest] of [
      ["abc", "a9993e364706816aba3e25717850c26c9cd0d89d"],
      [sentence, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"],
      ["a".repeat(1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"],
    ]
  ) assertEquals(sha1(new TextEncoder().encode(text)), digest);
});

Deno.test("sha1() hashes as the runtime does, around the ends of blocks", async () => {
  for (let length = 0; length <= 260; length++) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 151 + length) & 255);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", bytes));
    assertEquals(sha1(bytes), digest.toHex(), `${length} bytes`);
  }
});
