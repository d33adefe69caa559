import { assertEquals, assertThrows } from "@std/assert";
import { InvalidArgumentError } from "commander";
import { formatDuration, parseDuration, parseLimit } from "../../../src/cli/duration.ts";

Deno.test("parseDuration() reads a number and its unit", () => {
  const durations = { "0": 0, "250ms": 250, "30s": 30_000, "1.5m": 90_000, "2min": 120_000 };
  for (const [text, ms] of Object.entries({ ...durations, "1h": 3_600_000, "1d": 86_400_000 })) {
    assertEquals(parseDuration(text), ms, text);
  }
});

Deno.test("parseDuration() refuses what is no duration, and a number without a unit, because programs differ in what it means", () => {
  for (const text of ["", "s", "-1s", "1e3s", "1 s", "1w", "forever", "1s2s", "1constructor"]) {
    assertThrows(
      () => parseDuration(text),
      InvalidArgumentError,
      "It must be a number and a unit",
      text,
    );
  }
  for (const text of ["30", "1.5"]) {
    const message = `Its unit is missing: write '${text}s', for example`;
    assertThrows(() => parseDuration(text), InvalidArgumentError, message);
  }
});

Deno.test("parseLimit() knows no limit too", () => {
  assertEquals([parseLimit("forever"), parseLimit("10s")], [Infinity, 10_000]);
});

Deno.test("formatDuration() writes at most two units", () => {
  const short = { 0: "0 ms", 999: "999 ms", 1_000: "1.0 s", 59_940: "59.9 s", 60_000: "1 min" };
  const long = { 125_900: "2 min 5 s", 3_600_000: "1 h", 3_660_000: "1 h 1 min" };
  const durations = { ...short, ...long, 90_061_000: "1 d 1 h", Infinity: "forever" };
  for (const [ms, text] of Object.entries(durations)) {
    assertEquals(formatDuration(Number(ms)), text);
  }
});
