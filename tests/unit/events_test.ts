import { assert, assertEquals } from "@std/assert";
import { emit, type RedlockEvent } from "../../src/events.ts";
import { Cluster, TTL_MS } from "../support/cluster.ts";

/** What a call emits that waits for a lock, extends and releases it. */
const WAITED = new Set(["attempt", "woken", "acquired", "extended", "released"]);

const EVENT: RedlockEvent = { type: "node-connected", node: "redis://h:6379" };

Deno.test("emit() calls no listener while another runs, but when it has returned or thrown, in order", () => {
  const seen: unknown[] = [];
  const note = (event: RedlockEvent) => seen.push("node" in event && event.node);
  emit((event) => {
    for (const node of ["second", "third"]) emit(note, { ...EVENT, node });
    note(event);
    throw new Error("no");
  }, { ...EVENT, node: "first" });
  assertEquals(seen, ["first", "second", "third"]);
});

Deno.test("emit() lets a listener reject without an unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", note);
  emit(() => Promise.reject(new Error("no")), EVENT);
  await new Promise((resolve) => setTimeout(resolve, 0));
  globalThis.removeEventListener("unhandledrejection", note);
  assertEquals(unhandled, []);
});

Deno.test("emit() lets a listener return what has a broken then", () => {
  const thenable = {
    get then() {
      throw new Error("no");
    },
  };
  emit(() => thenable as unknown as void, EVENT);
});

Deno.test("a waiting call that asks because the key has expired was not woken", async () => {
  const cluster = new Cluster();
  cluster.occupy("a", 200);
  await cluster.settle(cluster.redlock.acquire("a"));
  assertEquals(new Set(cluster.eventTypes), new Set(["attempt", "acquired"]));
});

Deno.test("all events of one call and of its lock have the same array of resources, and no others", async () => {
  const cluster = new Cluster(3, { autoExtend: true });
  cluster.occupy();
  const waiting = cluster.redlock.acquire("a");
  await cluster.advance(500);
  cluster.free();
  const lock = await cluster.settle(waiting);
  await cluster.advance(TTL_MS);
  await lock.release();
  assertEquals(new Set(cluster.eventTypes), WAITED);
  const arrays = () =>
    new Set(cluster.events.flatMap((event) => "resources" in event ? [event.resources] : []));
  assertEquals(arrays().size, 1);
  for (const [any, count] of [[false, 2], [true, 4]] as const) { // a pool's lock has its own
    await (await cluster.lock({ any }, ["a", "b"])).release();
    assertEquals(arrays().size, count);
  }
  assert([...arrays()].every(Object.isFrozen)); // the client extends and releases what they name
  await cluster.close();
});
