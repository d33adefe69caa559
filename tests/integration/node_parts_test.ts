/**
 * Requests that need a part of the node which is not loaded yet. Imports nothing that loads the parts beforehand.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { parseAddress } from "../../src/redis/address.ts";
import { connect } from "../../src/redis/client.ts";
import { resolveClientOptions } from "../../src/redis/client.ts";
import type { LockRequest } from "../../src/quorum/lock_node.ts";
import { NODE_PARTS } from "../../src/redis_node/parts.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { FakeRequest } from "../support/fake_request.ts";

/** Forgets that a part was loaded. */
function forget(): void {
  for (const part of NODE_PARTS) part.loaded = undefined;
}

/** A request whose answer can be awaited. */
class AwaitedRequest extends FakeRequest {
  readonly answered: Promise<void>;
  #settle!: () => void;

  constructor(keys: string | readonly string[], details: Partial<LockRequest> = {}) {
    super(keys, { ttlMs: 60_000, ...details });
    this.answered = new Promise((resolve) => this.#settle = resolve);
  }

  override grant(nodeIndex: number): void {
    super.grant(nodeIndex);
    this.#settle();
  }

  override deny(nodeIndex: number): void {
    super.deny(nodeIndex);
    this.#settle();
  }

  override quarantine(nodeIndex: number): void {
    super.quarantine(nodeIndex);
    this.#settle();
  }

  override fail(nodeIndex: number, error: Error): void {
    super.fail(nodeIndex, error);
    this.#settle();
  }
}

async function withNode(use: (node: RedisNode, address: string) => Promise<void>): Promise<void> {
  await using nodes = await startNodes(1);
  const [address] = nodes.addresses;
  const wheel = new TimerWheel();
  const parsed = parseAddress(address);
  const node = new RedisNode(redisServer(parsed, resolveClientOptions({}, [parsed]), wheel));
  wheel.ref();
  try {
    forget();
    await use(node, address);
  } finally {
    await node.close();
    wheel.unref();
    wheel.close();
  }
}

for (
  const [what, keys, details] of [
    ["several keys", ["a", "b"], {}],
    ["a fencing token", "a", { counterFloor: 1 }],
    ["a guard", "a", { guardMs: 60_000 }],
    ["everything", ["a", "b"], { counterFloor: 1, guardMs: 60_000 }],
  ] as const
) {
  Deno.test(`RedisNode loads what ${what} takes, and keeps a release behind the acquisition`, async () => {
    await withNode(async (node, address) => {
      const acquisition = new AwaitedRequest(keys, details);
      const release = new AwaitedRequest(keys);
      node.acquire(acquisition, 0);
      node.release(release, 0);
      await Promise.all([acquisition.answered, release.answered]);
      const expected = "guardMs" in details ? "quarantined" : "granted";
      assertEquals([acquisition.outcomes, release.outcomes], [[expected], ["granted"]]);
      await using client = await connect(address);
      assertEquals(await client.send(["EXISTS", "a", "b"]), 0);
    });
  });
}

Deno.test("RedisNode never sends what was given up while its part was loaded, but sends every release", async () => {
  await withNode(async (node, address) => {
    const acquisition = new AwaitedRequest(["a", "b"]);
    const extension = new AwaitedRequest("c");
    const release = new AwaitedRequest("c", { wanted: false });
    await using client = await connect(address);
    await client.send(["SET", "c", "v", "PX", 1_000]);
    node.acquire(acquisition, 0);
    node.extend(extension, 0);
    node.release(release, 0);
    acquisition.wanted = extension.wanted = false;
    await Promise.all([acquisition, extension, release].map(({ answered }) => answered));
    assertEquals([acquisition.outcomes, extension.outcomes], [["failed"], ["failed"]]);
    assertEquals([release.outcomes, acquisition.maybeSet], [["granted"], 0]);
    assertEquals(await client.send(["EXISTS", "a", "b", "c"]), 0);
  });
});

Deno.test("RedisNode.close() sends a release that waits for a part", async () => {
  await withNode(async (node, address) => {
    await using client = await connect(address);
    for (const key of ["a", "b"]) await client.send(["SET", key, "v"]);
    const first = new AwaitedRequest("c");
    node.acquire(first, 0);
    await first.answered;
    const release = new AwaitedRequest(["a", "b"]);
    node.release(release, 0);
    await node.close();
    assertEquals(release.outcomes, ["granted"]);
    assertEquals(await client.send(["EXISTS", "a", "b"]), 0);
  });
});

Deno.test("RedisNode subscribes once its part is loaded, unless that was ended before", async () => {
  await withNode(async (node, address) => {
    const events: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const listener = (id: string) => ({
      id,
      onSubscribed() {
        events.push(id);
        resolve();
      },
      onUnsubscribed() {},
      onUnsupported: (_: number, error: Error) => void events.push(error.message),
      onReleased() {},
    });
    node.subscribe(listener("first"), 0);
    node.unsubscribe();
    node.subscribe(listener("second"), 0);
    await promise;
    assertEquals(events, ["second"]);
    await using client = await connect(address);
    assertEquals(await client.send(["PUBLISH", "hasp:wake:first", ""]), 0);
    node.unsubscribe();
  });
});
