/** Connections that are idle for long, on a network that forgets them and says nothing. */

import { assert, assertEquals } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import {
  type FakeClock,
  type FaultProxy,
  startFakeClock,
  startNodes,
  startProxy,
} from "../../src/testing/mod.ts";
import { connect as connectInDeno } from "../../src/transport/deno.ts";
import { connect as connectByNode } from "../../src/transport/node.ts";
import { eventually } from "../support/eventually.ts";

/**
 * Silence before a PING, and what passes at most until a connection without a reply is replaced.
 */
const IDLE_MS = 30_000, REPLACED_MS = 10_000;

/**
 * A client behind proxies, with a lock of its own and one that somebody else is about to release.
 */
async function startAll() {
  await using stack = new AsyncDisposableStack();
  const nodes = stack.use(await startNodes(3));
  const proxies: FaultProxy[] = [];
  for (const address of nodes.addresses) proxies.push(stack.use(await startProxy(address)));
  const redlock = stack.use(createRedlock(proxies.map(({ address }) => address)));
  const others = stack.use(createRedlock(nodes.addresses));
  const left = stack.move();
  return { nodes, proxies, redlock, others, [Symbol.asyncDispose]: () => left.disposeAsync() };
}

async function quietNight(clock: FakeClock, proxies: readonly FaultProxy[]): Promise<void> {
  await clock.tick(IDLE_MS / 2);
  for (const proxy of proxies) proxy.halfOpen();
  await clock.tick(IDLE_MS / 2 + REPLACED_MS);
}

Deno.test("tryAcquire() and waitMs: 0 take the lock after a silence in which the network forgot all connections", async () => {
  await using all = await startAll();
  using clock = startFakeClock();
  for (let night = 0; night < 3; night++) {
    await all.redlock.using("nightly", () => {});
    await quietNight(clock, all.proxies);
    const lock = await clock.tickUntil(all.redlock.tryAcquire("nightly"));
    assert(lock);
    await clock.tickUntil(lock.release());
    await quietNight(clock, all.proxies);
    const second = await clock.tickUntil(all.redlock.acquire("nightly", { waitMs: 0 }));
    await clock.tickUntil(second.release());
  }
});

Deno.test("acquire() is woken by a release after a silence in which the network forgot the subscriptions", async () => {
  await using all = await startAll();
  using clock = startFakeClock();
  const theirs = await all.others.acquire("a", { ttlMs: 600_000 });
  const waiting = all.redlock.acquire("a", {
    waitMs: Infinity,
    onEvent: ({ type }) => types.add(type),
  });
  const types = new Set<string>();
  await clock.tick(1_000);
  await quietNight(clock, all.proxies);
  types.delete("attempt");
  await theirs.release();
  const lock = await clock.tickUntil(waiting, 1_000);
  assertEquals(types.has("woken"), true);
  await clock.tickUntil(lock.release());
});

/**
 * The system's timer of the connection to `port`, as Linux numbers them: 2 is that of keep-alive.
 */
function timerOf(port: number): string | undefined {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = Deno.readTextFileSync("/proc/net/tcp").trim().split("\n").map((row) =>
    row.trim().split(/\s+/u)
  );
  return rows.find(([, , to]) => to.endsWith(remote))?.[5].slice(0, 2);
}

for (const [runtime, connect] of [["Deno", connectInDeno], ["Node", connectByNode]] as const) {
  for (const kind of ["tcp", "tls"] as const) {
    Deno.test({
      name: `connect() for ${runtime} asks the system to keep a connection over ${kind} alive`,
      ignore: Deno.build.os !== "linux",
      async fn() {
        using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
        const { port } = listener.addr;
        const controller = new AbortController();
        const { signal } = controller;
        const target = kind === "tls"
          ? { kind, hostname: "127.0.0.1", port, tls: {} } // whose handshake nobody answers
          : { kind, hostname: "127.0.0.1", port };
        const connecting = connect(target, { signal });
        connecting.catch(() => {});
        using accepted = await listener.accept();
        await eventually(() => assertEquals(timerOf(port), "02"));
        controller.abort();
        await connecting.then((stream) => stream.close(), () => {});
        assert(accepted);
      },
    });
  }
}
