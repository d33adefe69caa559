import { assertEquals } from "@std/assert";
import * as scripts from "../../src/scripts.ts";

for (const [name, { source, sha1 }] of Object.entries(scripts)) {
  Deno.test(`${name} is called by the SHA-1 of its source`, async () => {
    const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
    const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
    assertEquals(sha1, hex.join(""));
  });
}

Deno.test("ACQUIRE_ALL, EXTEND and RELEASE are scripts of their own", () => {
  const { ACQUIRE_ALL, EXTEND, RELEASE } = scripts;
  assertEquals(new Set([ACQUIRE_ALL.sha1, EXTEND.sha1, RELEASE.sha1]).size, 3);
});
