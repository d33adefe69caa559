import { assertEquals, assertInstanceOf } from "@std/assert";
import { LockLostError, type LockLostReason } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { Cluster, TTL_MS } from "../../support/cluster.ts";

/** How locks are lost: the options, and what happens. */
const LOSSES: readonly [
  reason: LockLostReason,
  what: string,
  options: RedlockOptions,
  lose: (cluster: Cluster, lock: Lock) => unknown,
][] = [
  ["expired", "its TTL passes", {}, (cluster) => cluster.advance(TTL_MS)],
  ["expired", "the process stands still", { autoExtend: true }, ({ clock }) => clock.block(TTL_MS)],
  ["expired", "the machine sleeps", {}, ({ clock }) => clock.stepWall(TTL_MS)],
  ["extend-failed", "the nodes hang", { autoExtend: true }, async (cluster) => {
    cluster.set("hang");
    await cluster.advance(TTL_MS);
  }],
  ["extend-failed", "the nodes fail", { autoExtend: true }, async (cluster) => {
    cluster.set("fail");
    await cluster.advance(TTL_MS);
  }],
  [
    "extensions-max",
    "it was extended often enough",
    { autoExtend: true, extensionsMax: 2 },
    (cluster) => cluster.advance(3 * TTL_MS),
  ],
  ["gone", "the nodes forget it", { autoExtend: true }, async (cluster) => {
    cluster.forget();
    await cluster.advance(TTL_MS / 2);
  }],
  ["closed", "the client closes", {}, (cluster) => cluster.close()],
];

for (const [reason, what, options, lose] of LOSSES) {
  Deno.test(`a lock is lost for the reason ${reason} if ${what}, in its error and its event`, async () => {
    const cluster = new Cluster();
    const lock = await cluster.lock(options);
    await lose(cluster, lock);
    const error = lock.signal.reason;
    assertInstanceOf(error, LockLostError);
    assertEquals(error.reason, reason);
    const lost = cluster.events.flatMap((event) => event.type === "lost" ? [event] : []);
    assertEquals(lost.map(({ reason, cause }) => [reason, cause]), [[reason, error.cause]]);
  });
}

Deno.test("Lock.extend() rejects for the reason that no extension is left, or that it was released", async () => {
  const cluster = new Cluster();
  const lock = await cluster.lock({ extensionsMax: 0 });
  for (const reason of ["extensions-max", "released"]) {
    const error = await cluster.rejection(lock.extend());
    assertInstanceOf(error, LockLostError);
    assertEquals([error.reason, lock.held], [reason, reason !== "released"]);
    await cluster.settle(lock.release());
  }
});
