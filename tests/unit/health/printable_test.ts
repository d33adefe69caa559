import { assertEquals } from "@std/assert";
import { printable } from "../../../src/health/printable.ts";

const TEXTS: readonly (readonly [string, string, string])[] = [
  ["plain text", "7.0.15", "7.0.15"],
  ["characters of other scripts", "Grüße, 世界 🔒", "Grüße, 世界 🔒"],
  ["line ends", "7.0\r\n\nerror SAME_SERVER: forged", "7.0 error SAME_SERVER: forged"],
  ["line separators", "a\u2028b\u2029c\u0085d", "a b c d"],
  ["columns", "7.0   replica\t5 d", "7.0 replica 5 d"],
  ["escape sequences", "\u001b[2J\u001b]0;title\u0007x\u009b1mz", "[2J ]0;title x 1mz"],
  ["text that runs backwards", "a\u202eb\u2066c\ufeff", "a b c"],
  ["half a surrogate pair", "a\ud800b", "a b"],
  ["nothing visible", " \r\n\u0000", ""],
];

for (const [what, text, expected] of TEXTS) {
  Deno.test(`printable() makes one visible line of ${what}`, () => {
    assertEquals(printable(text, 100), expected);
  });
}

Deno.test("printable() cuts a text that is too long, between characters", () => {
  assertEquals(printable("abcd", 4), "abcd");
  assertEquals(printable("abcde", 4), "abc…");
  assertEquals(printable("🔒🔒🔒🔒🔒", 4), "🔒🔒🔒…");
  assertEquals(printable("a b c d e", 5), "a b…");
  assertEquals(printable("x".repeat(1_000_000), 300), `${"x".repeat(299)}…`);
});

Deno.test("printable() changes nothing when it is applied again", () => {
  for (const [, text] of TEXTS) {
    for (const lengthMax of [3, 4, 5, 100]) {
      const once = printable(text, lengthMax);
      assertEquals(printable(once, lengthMax), once);
    }
  }
});
