import { assertEquals } from "@std/assert";
import { NO_FAULTS, Pipe } from "../../../src/testing/pipe.ts";

Deno.test("Pipe without a fault forwards at once, also if a test's fake timers have set the time back", () => {
  const faults = { ...NO_FAULTS, hung: true };
  const pipe = new Pipe(faults);
  let bytes = 0;
  const sink = { send: ({ length }: Uint8Array) => bytes += length, end() {} };
  const { now } = performance;
  const setTimeMs = (timeMs: number) => performance.now = () => timeMs;
  try {
    setTimeMs(60_000);
    pipe.push(new Uint8Array(1), sink);
    setTimeMs(0);
    faults.hung = false;
    pipe.flush();
    assertEquals(bytes, 1);
    setTimeMs(60_000);
    pipe.push(new Uint8Array(2), sink);
    setTimeMs(0);
    pipe.push(new Uint8Array(4), sink);
    assertEquals(bytes, 7);
  } finally {
    performance.now = now;
    pipe.close();
  }
});

Deno.test("Pipe.hurry() forwards what is delayed, and close() leaves neither data nor a timer", () => {
  const pipe = new Pipe({ ...NO_FAULTS, delayMs: 60_000 });
  let bytes = 0;
  const sink = { send: ({ length }: Uint8Array) => bytes += length, end() {} };
  pipe.push(new Uint8Array(1), sink);
  pipe.push(new Uint8Array(2), sink);
  assertEquals(bytes, 0);
  pipe.hurry();
  assertEquals(bytes, 3);
  pipe.push(new Uint8Array(4), sink);
  pipe.close();
  assertEquals([bytes, pipe.bytes], [3, 0]);
});
