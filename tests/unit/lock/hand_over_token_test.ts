import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { handOverToken, readToken } from "../../../src/lock/hand_over_token.ts";

const DIGITS = "0123456789abcdef0123456789abcdef01234567";
const VALUE = `${DIGITS}:t9wbk1:`;
const GIVEN = { value: VALUE, ttlMs: 30_000, keptMs: 0, resources: ["a"] };
const MESSAGE = "Cannot adopt lock as 'token' must be what 'lock.handOver()' has returned";

/** The URL-safe Base64 of any bytes, as a token is one. */
function base64url(bytes: Uint8Array | string): string {
  const given = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  return (given as Uint8Array & { toBase64(options: object): string })
    .toBase64({ alphabet: "base64url", omitPadding: true });
}

Deno.test("a token contains value, times and resources, whatever characters they have", () => {
  for (
    const [value, resources] of [
      [VALUE, ["invoice:42"]],
      [`${VALUE}web-3:1234 ~`, ["a"]],
      [VALUE, ["?>~ÿ", "日本", "\u{1f512}", '"\\', "\0\r\n", " "]],
      [VALUE, Array.from({ length: 1_000 }, (_, index) => `${index}:`.padEnd(500, "é"))],
    ] as const
  ) {
    const given = { value, ttlMs: 30_000, keptMs: 5, resources: [...resources] };
    const token = handOverToken(given);
    assertMatch(token, /^[A-Za-z0-9_-]{60,}$/u);
    assertEquals(readToken(token, ""), given);
    assertEquals(token, base64url(JSON.stringify([2, value, 30_000, 5, ...resources])));
  }
});

Deno.test("readToken() refuses everything that is no token, and shows nothing of it", () => {
  const json = (...parts: unknown[]) => base64url(JSON.stringify(parts));
  const whole = handOverToken(GIVEN);
  for (
    const token of [
      ...[undefined, null, 1, {}, [whole], "", " ", VALUE, `${whole}=`, ` ${whole}`],
      ...[whole.slice(3), whole.slice(0, -1), "é", "a", ...["[1", "1", "null"].map(base64url)],
      ...[json(), json(2), json(1, VALUE, 10, 0, "a"), json("2", VALUE, 10, 0, "a")],
      ...[VALUE.slice(1), `${DIGITS}:`, DIGITS, VALUE.toUpperCase(), 7, [VALUE]].map((value) =>
        json(2, value, 10, 0, "a")
      ),
      ...["10", -1, 0.5, 86_400_001, null].flatMap((ms) => [
        json(2, VALUE, ms, 0, "a"),
        json(2, VALUE, 10, ms, "a"),
      ]),
      base64url(JSON.stringify({ length: 5, 0: 2, 1: VALUE, 2: 10, 3: 0, 4: "a" })),
      base64url(new Uint8Array([0xff, 0xfe, 0x00])),
    ]
  ) {
    assertThrows(() => readToken(token as string, ""), TypeError, MESSAGE, String(token));
  }
});
