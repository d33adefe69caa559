import { assertEquals } from "@std/assert";
import { printable, PRINTABLE_LENGTH_MAX } from "../../src/printable.ts";

Deno.test("printable() leaves ordinary text as it is, in any script", () => {
  for (const text of ["", "ERR syntax error", "naïve 日本語 🔒 'a' \"b\" \\n"]) {
    assertEquals(printable(text), text);
  }
});

for (
  const [what, text, expected] of [
    ["a line feed", "ERR a\nnode-2: fine", "ERR a\\u{a}node-2: fine"],
    ["a carriage return", "ERR a\rb", "ERR a\\u{d}b"],
    ["an escape sequence", "\x1b[31mred", "\\u{1b}[31mred"],
    ["a C1 control", "\u009b31m", "\\u{9b}31m"],
    ["NUL and DEL", "\0\x7f", "\\u{0}\\u{7f}"],
    ["line and paragraph separators", "a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"],
    ["a change of direction", "\u202eabc\u2066", "\\u{202e}abc\\u{2066}"],
    ["a zero-width character", "a\u200bb\ufeff", "a\\u{200b}b\\u{feff}"],
    ["half a character", "a\ud83d", "a\\u{d83d}"],
  ] as const
) {
  Deno.test(`printable() escapes ${what}`, () => assertEquals(printable(text), expected));
}

Deno.test("printable() replaces the password wherever it occurs", () => {
  assertEquals(printable("ERR hunter2, xhunter2x", ["hunter2"]), "ERR ***, x***x");
  assertEquals(printable("ERR a$&$&$&b", ["$&$&$&"]), "ERR a***b");
  assertEquals(printable("ERR nothing here", []), "ERR nothing here");
});

Deno.test("printable() replaces a short secret where it stands alone, and leaves words that contain it", () => {
  const text = "NOPERM User a has no permissions for 'a', aa, a_b, a1; a";
  assertEquals(
    printable(text, ["a"]),
    "NOPERM User *** has no permissions for '***', aa, a_b, a1; ***",
  );
  assertEquals(printable("ERR 12345 123456 1234567", ["12345"]), "ERR *** 123456 1234567");
});

Deno.test("printable() replaces a password with control characters in it, or at the place of the cut", () => {
  assertEquals(printable("ERR a\nb!", ["a\nb"]), "ERR ***!");
  const before = "x".repeat(PRINTABLE_LENGTH_MAX - 3);
  assertEquals(printable(`${before}hunter2`, ["hunter2"]), `${before}***`);
});
