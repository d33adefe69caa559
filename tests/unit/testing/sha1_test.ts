import { assertEquals } from "@std/assert";
import { sha1 } from "../../../src/testing/lua/sha1.ts";

Deno.test("sha1() hashes as the runtime does, around the ends of blocks", async () => {
  for (let length = 0; length <= 260; length++) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 151 + length) & 255);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", bytes));
    assertEquals(sha1(bytes), digest.toHex(), `${length} bytes`);
  }
});
