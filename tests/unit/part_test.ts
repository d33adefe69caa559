import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import * as lockParts from "../../src/lock/parts.ts";
import * as nodeParts from "../../src/redis_node/parts.ts";
import { Part } from "../../src/part.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Cluster } from "../support/cluster.ts";

const { counting, drawing, extending, inspecting, waiting } = lockParts;

Deno.test("LOCK_PARTS and NODE_PARTS are all parts", () => {
  const partsOf = (module: object) => Object.values(module).filter((each) => each instanceof Part);
  assertEquals(new Set(lockParts.LOCK_PARTS), new Set(partsOf(lockParts)));
  assertEquals(new Set(nodeParts.NODE_PARTS), new Set(partsOf(nodeParts)));
});

Deno.test("Part loads its module with the first call, and then no more", async () => {
  let loads = 0;
  const module = {};
  const part = new Part("tests", () => Promise.resolve((loads++, module)));
  assertEquals([part.loaded, loads], [undefined, 0]);
  assertStrictEquals(await part.load(), module);
  assertStrictEquals(part.loaded, module);
  assertStrictEquals(await part.load(), module);
  assertEquals(loads, 1);
});

Deno.test("Part that cannot be loaded says which, and tries again with the next call", async () => {
  const answers: unknown[] = ["offline", new TypeError("no such file"), {}];
  const part = new Part("tests", () => {
    const answer = answers.shift();
    return answer instanceof Error || typeof answer === "string"
      ? Promise.reject(answer)
      : Promise.resolve(answer);
  });
  const text = "Cannot load the lock client's part for tests:";
  await assertRejects(() => part.load(), Error, `${text} offline`);
  const error = await assertRejects(() => part.load(), Error, `${text} no such file`);
  assertEquals(error.cause, new TypeError("no such file"));
  assertEquals([await part.load(), part.loaded], [{}, {}]);
});

/** Takes a part away for the time of `run`. */
async function without(part: Part<unknown>, run: () => Promise<void>): Promise<void> {
  const { loaded, load } = part;
  part.loaded = undefined;
  part.load = () => Promise.reject(new Error("offline"));
  try {
    await run();
  } finally {
    Object.assign(part, { loaded, load });
  }
}

for (
  const [what, part, options] of [
    ["fencing tokens", counting, { fencing: true }],
    ["a tokenSource", drawing, { tokenSource: () => 1 }],
    ["extensions", extending, { autoExtend: true }],
  ] as [string, Part<unknown>, RedlockOptions][]
) {
  Deno.test(`acquire() whose part for ${what} cannot be loaded rejects before it asks a node`, async () => {
    const cluster = new Cluster();
    await without(part, async () => {
      for (const waitMs of [0, 1_000]) {
        const call = cluster.redlock.acquire("a", { ...options, waitMs });
        await assertRejects(() => cluster.settle(call), Error, "offline");
      }
    });
    assertEquals(cluster.steps, ["", "", ""]);
    const lock = await cluster.lock();
    assertEquals(await cluster.settle(lock.release()), true);
  });
}

Deno.test("acquire() whose part for waiting cannot be loaded rejects, and leaves neither keys nor a place in the queue", async () => {
  const cluster = new Cluster();
  for (const node of cluster.nodes.slice(0, 2)) node.set("a", "other", 500);
  await without(waiting, async () => {
    const calls = Promise.allSettled([1, 2].map(() => cluster.redlock.acquire("a")));
    for (const outcome of await cluster.settle(calls)) {
      assertEquals(outcome.status === "rejected" && outcome.reason, new Error("offline"));
    }
  });
  assertEquals(cluster.holders(), ["other", "other", undefined]);
  const lock = await cluster.lock();
  assertEquals(await cluster.settle(lock.release()), true);
});

Deno.test("extend() and inspect() whose parts cannot be loaded reject, and the lock stays held", async () => {
  const cluster = new Cluster();
  const lock = await cluster.lock();
  await without(extending, async () => {
    await assertRejects(() => lock.extend(), Error, "offline");
  });
  await without(inspecting, async () => {
    await assertRejects(() => cluster.redlock.inspect("a"), Error, "offline");
  });
  assertEquals(lock.held, true);
  await cluster.settle(lock.extend());
  assertEquals(lock.extensions, 1);
});
