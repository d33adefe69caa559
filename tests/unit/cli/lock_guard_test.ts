import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import type { Lock } from "../../../mod.ts";
import { LockGuard } from "../../../src/cli/run/lock_guard.ts";
import type { RunningCommand } from "../../../src/cli/run/running_command.ts";
import { LEFT } from "../../../src/cli/run/shell_scripts.ts";
import { eventually } from "../../support/eventually.ts";

/** A guard over a command and a lock that do nothing by themselves, and what it does with them. */
function startGuard(options: { limitMs: number; graceMs: number; isAllowed?: boolean }) {
  const { limitMs, graceMs, isAllowed = true } = options;
  const controller = new AbortController();
  const signals: string[] = [];
  const limitsMs: number[] = [];
  const reports: string[] = [];
  const limitsAtReport: number[] = [];
  let onWatcherEnd: (word?: string) => void = () => {};
  const command = {
    signal(name: string) {
      signals.push(name);
      return isAllowed;
    },
    watcher: {
      killAfter: (ms: number) => limitsMs.push(ms),
      ended: { then: (callback: typeof onWatcherEnd) => onWatcherEnd = callback },
    },
  };
  const lock = { resources: ["job"], signal: controller.signal, remainingMs: () => 10_000 };
  const failed = [{ node: "redis://a", outcome: "timed-out", elapsedMs: 1 } as const];
  const make = () =>
    new LockGuard(lock as unknown as Lock, command as unknown as RunningCommand, {
      graceMs,
      limitMs: () => limitMs,
      failedVotes: () => failed,
      report(message) {
        reports.push(message);
        limitsAtReport.push(limitsMs.at(-1)!);
      },
    });
  const lose = () => controller.abort(new Error("Cannot keep the lock"));
  const endWatcher = (word?: string) => onWatcherEnd(word);
  return { make, lose, endWatcher, signals, limitsMs, reports, limitsAtReport };
}

Deno.test("LockGuard.extended() after stop() watches over nothing", () => {
  const { make, limitsMs } = startGuard({ limitMs: 10_000, graceMs: 5_000 });
  const guard = make();
  guard.stop();
  guard.extended(); // by an extension that was under way
  assertEquals(limitsMs, [10_000]); // and the test leaves no timer
});

Deno.test("LockGuard kills when the time of the lock is over, though the grace period is not", async () => {
  const { make, lose, signals, limitsMs } = startGuard({ limitMs: 100, graceMs: 60_000 });
  const guard = make();
  lose();
  assertEquals(signals, ["SIGTERM"]);
  assertLessOrEqual(limitsMs.at(-1)!, 100);
  await eventually(() => assertEquals(signals, ["SIGTERM", "SIGKILL"]));
  assert(guard.isEnding);
  guard.stop();
});

Deno.test("LockGuard kills when the grace period is over, though the time of the lock is not", async () => {
  const { make, lose, signals, limitsMs } = startGuard({ limitMs: 600_000, graceMs: 100 });
  const guard = make();
  lose();
  await eventually(() => assertEquals(signals, ["SIGTERM", "SIGKILL"]));
  assertEquals(limitsMs, [600_000, 100]);
  guard.stop();
});

Deno.test("LockGuard has the watcher kill after the grace period before it reports, as a full pipe may block that", () => {
  const { make, lose, limitsAtReport } = startGuard({ limitMs: 600_000, graceMs: 100 });
  const guard = make();
  lose();
  guard.stop();
  assertEquals(limitsAtReport, [100]);
});

Deno.test("LockGuard asks the command to end when only the grace period is left", async () => {
  const { make, signals, reports } = startGuard({ limitMs: 60_100, graceMs: 60_000 });
  const guard = make();
  assertEquals(signals, []);
  await eventually(() => assertEquals(signals, ["SIGTERM"]));
  const why = 'Cannot extend lock "job": 10000 ms are left; error: redis://a: no answer';
  assertEquals(reports, [`${why}; the command is stopped`]);
  guard.stop();
});

Deno.test("LockGuard ends a command whose lock was lost before there was a guard", () => {
  const { make, lose, signals, reports } = startGuard({ limitMs: 10_000, graceMs: 5_000 });
  lose();
  const guard = make();
  assertEquals([signals, reports], [["SIGKILL"], []]); // and the watcher says how it ended
  guard.stop();
});

Deno.test("LockGuard leaves it to the watcher to say how a command ended if hasp is late", () => {
  const { make, lose, signals, reports } = startGuard({ limitMs: -1, graceMs: 5_000 });
  const guard = make();
  lose();
  assertEquals([signals, reports, guard.isEnding], [["SIGKILL"], [], false]);
  guard.stop();
});

Deno.test("LockGuard says if it may not end the command", () => {
  const options = { limitMs: 10_000, graceMs: 5_000, isAllowed: false };
  const { make, lose, endWatcher, reports } = startGuard(options);
  const guard = make();
  lose();
  endWatcher(LEFT);
  guard.stop();
  assertEquals(reports, [
    "Cannot keep the lock; the command cannot be stopped, because it runs as another user",
    "Processes of the command run on: hasp may not end them",
  ]);
});

Deno.test("LockGuard ends the command if its watcher has ended", () => {
  const { make, endWatcher, signals } = startGuard({ limitMs: 10_000, graceMs: 5_000 });
  const guard = make();
  endWatcher();
  assertEquals(signals, ["SIGTERM"]);
  guard.stop();
});
