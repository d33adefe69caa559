import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import process from "node:process";
import { type Inspection, LockHeldError, type Redlock } from "../../../mod.ts";
import { acquire, marginMs, run, type RunOptions } from "../../../src/cli/run/run_command.ts";
import { startFakeClock } from "../../../src/testing/mod.ts";

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

Deno.test("hasp run says once that it waits because no node answers for a minute, and why", async () => {
  const { write } = process.stderr;
  const lines: string[] = [];
  process.stderr.write = (line: unknown) => lines.push(String(line)) > 0;
  using clock = startFakeClock();
  try {
    const nodes = ["redis://:a,b c@127.0.0.1:1, redis://127.0.0.1:2"];
    const options = { node: nodes, resource: ["a"], ttl: 30_000, wait: Infinity, atLeast: 0 };
    const running = run(["true"], options as unknown as RunOptions);
    await clock.tick(58_000);
    assertEquals(lines, []);
    await clock.tick(12_000);
    assertMatch(
      lines.join(""),
      /^hasp: Still waiting, because too few nodes have answered for a minute: 0 of 2 nodes granted it, 2 failed, 2 are needed; first error: Connection to redis:\/\/127.0.0.1:1 could not be made: .*\n$/u,
    );
    process.emit("SIGTERM", "SIGTERM");
    assertEquals(await clock.tickUntil(running), 143);
  } finally {
    process.stderr.write = write;
  }
});
