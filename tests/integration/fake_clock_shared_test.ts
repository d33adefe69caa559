/**
 * Faked time over nodes that several tests share: Deno's sanitizers look at what each test leaves.
 */

import { createRedlock } from "../../mod.ts";
import { startFakeClock, startNodes, type TestNodes } from "../../src/testing/mod.ts";

const TTL_MS = 600_000;

let nodes: TestNodes;
Deno.test.beforeAll(async () => void (nodes = await startNodes(3)));
Deno.test.afterAll(() => nodes.close());

Deno.test("FakeClock.restore() leaves no connection open while the nodes run on", async () => {
  await using redlock = createRedlock(nodes.addresses);
  using clock = startFakeClock();
  await redlock.acquire("a");
  await clock.tick(TTL_MS);
});

Deno.test("FakeClock.restore() ends a tick, which opens no connection then", async () => {
  await using redlock = createRedlock(nodes.addresses);
  const clock = startFakeClock();
  await redlock.acquire("b");
  const tick = clock.tick(TTL_MS);
  clock.restore();
  await tick;
});
