import { assert, assertEquals, assertMatch } from "@std/assert";
import { LockHeldError } from "../../../src/errors.ts";
import { holderOf } from "../../../src/lock/holder.ts";
import { Cluster, locked } from "../../support/cluster.ts";

const VALUE = "0123456789abcdef".repeat(3).slice(0, 40);

Deno.test("holderOf() is the same for one value, another for every other, and has the label behind it", () => {
  assertMatch(holderOf(VALUE), /^[\da-f]{8}$/u);
  assertEquals(holderOf(VALUE), holderOf(`${VALUE}`));
  const others = ["", VALUE.slice(1), `${VALUE}:`, `${VALUE}:web-3:1234`, `${VALUE}:web-4:1234`];
  const ids = [VALUE, ...others].map((value) => holderOf(value).slice(0, 8));
  assertEquals(new Set(ids).size, ids.length);
  assertEquals(holderOf(`${VALUE}:web-3:1234`).slice(8), " web-3:1234");
});

for (
  const value of [
    VALUE,
    `${VALUE}:`,
    `${VALUE.slice(1)}:label`,
    `${VALUE}-label`,
    `${VALUE}:a\nb`,
    `${VALUE}:${"x".repeat(65)}`,
    "550e8400-e29b-41d4-a716-446655440000:label",
    "",
  ]
) {
  Deno.test(`holderOf() shows no label in ${JSON.stringify(value)}`, () => {
    assertEquals(holderOf(value).length, 8);
  });
}

Deno.test("Lock.holder is what the event and inspect() show, with and without a label, and not the value", async () => {
  for (const label of [undefined, "web-3:1234"]) {
    const { cluster, lock } = await locked(3, { label });
    assertEquals(lock.value.slice(40), label === undefined ? "" : ":web-3:1234");
    assertEquals(lock.holder, holderOf(lock.value));
    assertEquals(lock.holder.includes(lock.value.slice(0, 8)), false);
    const [acquired] = cluster.events.filter((event) => event.type === "acquired");
    assertEquals(acquired.holder, lock.holder);
    const { holder } = await cluster.settle(cluster.redlock.inspect("a"));
    assertEquals(holder, lock.holder);
    await cluster.close();
  }
});

Deno.test("LockHeldError.holder is this client's own lock, if that is in the way", async () => {
  const { cluster, lock } = await locked(3, { label: "web-3:1234" });
  const error = await cluster.rejection(cluster.redlock.acquire("a", { waitMs: 20 }));
  assert(error instanceof LockHeldError);
  assertEquals(error.holder, lock.holder);
  await cluster.close();
});

Deno.test("LockHeldError.holder is undefined if no node has reported it", async () => {
  const cluster = new Cluster();
  cluster.occupy("a");
  const error = await cluster.rejection(cluster.redlock.acquire("a", { waitMs: 0 }));
  assert(error instanceof LockHeldError);
  assertEquals(error.holder, undefined);
});
