import { assertEquals } from "@std/assert";
import type { Lock } from "../../../mod.ts";
import { LockGuard } from "../../../src/cli/run/lock_guard.ts";
import type { RunningCommand } from "../../../src/cli/run/running_command.ts";

Deno.test("LockGuard.extended() after stop() watches over nothing", async () => {
  const validMs: number[] = [];
  const command = {
    isRunning: false,
    signal: () => {},
    validFor: (remainingMs: number) => validMs.push(remainingMs),
  };
  const lock = { signal: new AbortController().signal, remainingMs: () => 10_000 };
  const guard = new LockGuard(
    lock as unknown as Lock,
    command as unknown as RunningCommand,
    5_000,
    () => {},
  );
  await guard.stop();
  guard.extended(); // by an extension that was under way
  assertEquals(validMs, [10_000]); // and the test leaves no timer
});
