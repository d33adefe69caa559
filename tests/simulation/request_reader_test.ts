import { assertEquals, assertThrows } from "@std/assert";
import { RequestReader } from "./support/request_reader.ts";

const REQUESTS: readonly (readonly string[])[] = [
  ["PING"],
  ["SET", "a\r\n$1", "", "\xff\x00"],
  ["GET", "*2\r\n$1\r\n"],
];
const BYTES = REQUESTS.map((words) =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`
).join("");

/** Reads chunks; returns the requests. */
function read(...chunks: readonly string[]): string[][] {
  const requests: string[][] = [];
  const reader = new RequestReader((words) => requests.push(words));
  for (const chunk of chunks) reader.push(chunk);
  return requests;
}

Deno.test("RequestReader reads requests whole, in two pieces and byte by byte", () => {
  assertEquals(read(BYTES), REQUESTS);
  for (let at = 1; at < BYTES.length; at++) {
    assertEquals(read(BYTES.slice(0, at), BYTES.slice(at)), REQUESTS);
  }
  assertEquals(read(...BYTES), REQUESTS);
});

Deno.test("RequestReader reads words of any length and of any bytes", () => {
  const word = String.fromCharCode(...Array.from({ length: 10_000 }, (_, index) => index % 256));
  assertEquals(read(`*1\r\n$10000\r\n${word}\r\n`), [[word]]);
});

Deno.test("RequestReader refuses what is no request", () => {
  for (const text of ["PING\r\n", "*x\r\n", "*-1\r\n", "*1\r\n:1\r\n", "*1\r\n$1\r\nab\r\n"]) {
    assertThrows(() => read(text), Error, "Cannot ");
  }
});
