import { assertEquals } from "@std/assert";
import process from "node:process";
import { type Interrupted, Signals } from "../../../src/cli/run/signals.ts";

Deno.test("Signals.passTo() passes on the signals that have arrived before, and those that arrive later", () => {
  const signals = new Signals();
  try {
    process.emit("SIGUSR2", "SIGUSR2");
    const passed: string[] = [];
    signals.passTo((signal) => passed.push(signal));
    process.emit("SIGTERM", "SIGTERM");
    assertEquals(passed, ["SIGUSR2", "SIGTERM"]);
    assertEquals((signals.waiting.reason as Interrupted).exitCode, 140);
  } finally {
    signals.stop();
  }
});
