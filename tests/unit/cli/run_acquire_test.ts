import { assertEquals, assertRejects } from "@std/assert";
import { type Inspection, LockHeldError, type Redlock } from "../../../mod.ts";
import { acquire, type RunOptions } from "../../../src/cli/run/run_command.ts";

for (const isHeld of [true, false]) {
  Deno.test(`hasp run --on-held skip ends by a signal that arrives while it asks who holds the lock, if ${isHeld ? "somebody" : "nobody"} does`, async () => {
    const controller = new AbortController();
    const interrupted = new Error("interrupted");
    let attempts = 0;
    const redlock = {
      acquire: () => {
        attempts++;
        return Promise.reject(new LockHeldError("held", { resources: ["a"], votes: [] }));
      },
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
