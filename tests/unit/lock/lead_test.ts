import { assert, assertEquals } from "@std/assert";
import type { Lock } from "../../../mod.ts";
import { Cluster, REASON, test } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

const ERROR = new Error("the work failed");

/** A cluster, a leader whose terms are what `term` makes of them, and what ends it. */
function startLeader(term: (lock: Lock, number: number) => unknown) {
  const cluster = new Cluster(3);
  const stop = new AbortController();
  const startsMs: number[] = [];
  const startMs = cluster.nowMs;
  const [resources, options] = [["a"], { signal: stop.signal }];
  const leading = cluster.redlock.lead(resources, options, (lock) => {
    startsMs.push(cluster.nowMs);
    return term(lock, startsMs.length);
  });
  Object.assign(options, { signal: undefined, ttlMs: 0 }); // after they were read
  resources.pop();
  return { cluster, stop, leading, startMs, startsMs };
}

function aborted({ signal }: Lock): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

function failures(cluster: Cluster) {
  return cluster.events.filter((event) => event.type === "lead-failed");
}

Deno.test("lead() holds the lock while its routine runs, and resolves when its signal aborts", async () => {
  const { cluster, stop, leading, startMs, startsMs } = startLeader(aborted);
  await cluster.advance(60_000);
  assertEquals(startsMs, [startMs]);
  assert(cluster.holders().every(Boolean));
  stop.abort(REASON);
  assertEquals(await cluster.settle(leading), undefined);
  await runMicrotasks();
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
  assertEquals(failures(cluster), []);
  assertEquals(cluster.timers, [0, 0]);
});

Deno.test("lead() waits for the lock without a limit, and gives up waiting when its signal aborts", async () => {
  const { cluster, stop, leading, startsMs } = startLeader(aborted);
  cluster.occupy("a", 3_600_000);
  await cluster.advance(3_000_000);
  assertEquals(startsMs, []);
  stop.abort(REASON);
  assertEquals(await cluster.settle(leading), undefined);
});

Deno.test("lead() begins again a second after its routine has returned, so that others can lead", async () => {
  const { cluster, stop, leading, startMs, startsMs } = startLeader(() => {});
  await cluster.advance(3_500);
  assertEquals(startsMs, [0, 1_000, 2_000, 3_000].map((ms) => startMs + ms));
  assertEquals(failures(cluster), []);
  stop.abort(REASON);
  await cluster.settle(leading);
});

Deno.test("lead() pauses for longer after each term that fails, up to 30 s, and reports it", async () => {
  const { cluster, stop, leading } = startLeader(() => {
    throw ERROR;
  });
  cluster.fraction = 0.999;
  await cluster.advance(200_000);
  const [first, ...others] = failures(cluster);
  assertEquals([first.resources, first.error], [["a"], ERROR]);
  const seconds = [first, ...others].map(({ delayMs }) => Math.round(delayMs / 1_000));
  assertEquals(seconds.slice(0, 7), [2, 4, 8, 16, 30, 30, 30]);
  stop.abort(REASON);
  await cluster.settle(leading);
});

Deno.test("lead() begins with a short pause again after a term that lasted, and leads again after a loss", async () => {
  const { cluster, stop, leading, startsMs } = startLeader(async (lock, number) => {
    if (number < 4) throw ERROR;
    await aborted(lock);
  });
  cluster.fraction = 0.999;
  await cluster.advance(100_000);
  assertEquals([startsMs.length, failures(cluster).length], [4, 3]);
  cluster.forget();
  await cluster.advance(10_000);
  assertEquals(startsMs.length, 5);
  const { error, delayMs } = failures(cluster).at(-1)!;
  assertEquals((error as { code?: string }).code, "LOCK_LOST");
  assertEquals(Math.round(delayMs / 1_000), 2);
  stop.abort(REASON);
  await cluster.settle(leading);
});

test("lead() ends at once if its signal has aborted, and with an error if its client is closed", async (cluster) => {
  const routine = () => assert(false, "it must not run");
  await cluster.settle(cluster.redlock.lead("a", { signal: AbortSignal.abort(REASON) }, routine));
  cluster.occupy("a");
  const leading = cluster.redlock.lead("a", {}, routine).catch((error) => error);
  await cluster.advance(1_000);
  await cluster.settle(cluster.redlock.close());
  assertEquals((await leading).code, "CLOSED");
  const pausing = new Cluster(3);
  const again = pausing.redlock.lead("a", {}, () => {}).catch((error) => error);
  await pausing.advance(500);
  await pausing.settle(pausing.redlock.close());
  assertEquals((await again).code, "CLOSED");
});
