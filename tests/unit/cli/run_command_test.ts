import { assertEquals, assertRejects } from "@std/assert";
import { type Inspection, LockHeldError, type Redlock } from "../../../mod.ts";
import { acquire, marginMs, type RunOptions } from "../../../src/cli/run/run_command.ts";

for (const isHeld of [true, false]) {
  Deno.test(`hasp run --on-held skip ends by a signal that arrives while it asks who holds the lock, if ${isHeld ? "somebody" : "nobody"} does`, async () => {
    const controller = new AbortController();
    const interrupted = new Error("interrupted");
    let attempts = 0;
    const held = new LockHeldError("held", { resources: ["a"], votes: [] });
    const redlock = {
      acquire: () => ++attempts && Promise.reject(held),
      inspect: () => {
        controller.abort(interrupted);
        return Promise.resolve({ held: isHeld } as Inspection);
      },
    };
    const options = { resource: ["a"], onHeld: "skip" } as unknown as RunOptions;
    const acquiring = acquire(redlock as unknown as Redlock, options, controller.signal);
    assertEquals(await assertRejects(() => acquiring, Error), interrupted);
    assertEquals(attempts, 1);
  });
}

Deno.test("marginMs() is a twentieth of the TTL, and at least 100 ms", () => {
  assertEquals([1_000, 2_000, 30_000].map(marginMs), [100, 100, 1_500]);
});
