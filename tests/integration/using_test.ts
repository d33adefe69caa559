/** What `using` does when a majority of real servers falls silent or dies. */
import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { once } from "node:events";
import { createRedlock, type Lock, LockLostError } from "../../mod.ts";
import { type RedisServer, startServers } from "../support/servers.ts";
import { onAll, setOnAll, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS } from "../support/times.ts";

/** The validity ends after two thirds of the TTL: a busy machine has the last third to look. */
const OPTIONS = { ttlMs: 6_000, driftFactor: 1 / 3, onEvent() {} };

const STROKES: [string, (server: RedisServer) => Promise<void>][] = [
  ["hang", (server) => server.pause()],
  ["are killed", (server) => server.kill()],
];

for (const [what, strike] of STROKES) {
  Deno.test(`using() aborts lock.signal while the keys live if three of five servers ${what}, and rejects though its routine resolves`, async () => {
    await using servers = await startServers(5);
    await using redlock = createRedlock(servers.urls, OPTIONS);
    await warmUp(redlock, servers);
    let atAbort: unknown[] = [];
    const routine = async (lock: Lock) => {
      await setOnAll(servers, "job", lock);
      await Promise.all(servers.slice(0, 3).map(strike));
      await once(lock.signal, "abort");
      const values = await onAll(servers.slice(3), "GET", "job");
      atAbort = [lock.held, lock.remainingMs(), ...values.map((value) => value === lock.value)];
    };
    const using = deadline(redlock.using("job", routine), 2 * OPTIONS.ttlMs + SLACK_MS);
    await assertRejects(
      () => using,
      LockLostError,
      'Cannot keep lock "job": its validity has ended',
    );
    assertEquals(atAbort, [false, 0, true, true]);
  });
}
