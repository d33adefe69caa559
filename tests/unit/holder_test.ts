import { assert, assertEquals } from "@std/assert";
import { LockHeldError } from "../../src/errors.ts";
import { describeHolder, holderOf, isOwnValue, newValue } from "../../src/holder.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { Cluster, locked } from "../support/cluster.ts";
import { FakeClock } from "../support/fake_clock.ts";

const DIGITS = "0123456789abcdef".repeat(3).slice(0, 40);
const AT = new Date("2026-02-03T04:04:05Z");

Deno.test("holderOf() is FNV-1a with 32 bits, and another for every other value", () => {
  assertEquals(["", "a", "foobar"].map(holderOf), ["811c9dc5", "e40c292c", "bf9cf968"]);
  const others = ["", DIGITS.slice(1), `${DIGITS}:`, `${DIGITS}:web-3:1234`, `${DIGITS}:web-4:1`];
  const ids = [DIGITS, ...others].map(holderOf);
  assertEquals(new Set(ids).size, ids.length);
});

Deno.test("describeHolder() reads the second of the acquisition and the label from a value of this library", () => {
  const wheel = new TimerWheel(new FakeClock(0, AT.getTime()));
  for (const label of ["web-3:1234", "", "x".repeat(64)]) {
    const value = newValue(wheel, label);
    assert(isOwnValue(value));
    assertEquals(describeHolder(value), {
      holder: holderOf(value),
      label: label || undefined,
      acquiredAt: AT,
    });
  }
  assert(isOwnValue(newValue(new TimerWheel(new FakeClock(0, -1)), ""))); // before 1970
});

for (
  const value of [
    DIGITS,
    `${DIGITS}:label`,
    `${DIGITS}::label`,
    `${DIGITS}:a1b2c3d4e:label`,
    `${DIGITS}:A1:label`,
    `${DIGITS.slice(1)}:t5u1v2:label`,
    `${DIGITS}-t5u1v2:label`,
    `${DIGITS}:t5u1v2:a\nb`,
    `${DIGITS}:t5u1v2:${"x".repeat(65)}`,
    "550e8400-e29b-41d4-a716-446655440000:label",
    "",
  ]
) {
  Deno.test(`describeHolder() knows neither label nor time of ${JSON.stringify(value)}`, () => {
    assertEquals(isOwnValue(value), false);
    const { holder, ...others } = describeHolder(value);
    assertEquals([holder, others], [holderOf(value), { label: undefined, acquiredAt: undefined }]);
  });
}

Deno.test("Lock.holder is what the event and inspect() show, with and without a label, and not the value", async () => {
  for (const label of [undefined, "web-3:1234"]) {
    const { cluster, lock } = await locked(3, { label });
    const second = Math.floor(cluster.clock.wallMs() / 1_000);
    assertEquals(lock.value.slice(40), `:${second.toString(36)}:${label ?? ""}`);
    assertEquals(lock.holder, holderOf(lock.value));
    const [acquired] = cluster.events.filter((event) => event.type === "acquired");
    assertEquals(acquired.holder, lock.holder);
    const { holders, mode } = await cluster.settle(cluster.redlock.inspect("a"));
    assertEquals(mode, "exclusive");
    const acquiredAt = new Date(second * 1_000);
    assertEquals(holders, [{ holder: lock.holder, label, acquiredAt }]);
    await cluster.close();
  }
});

Deno.test("the value of a lock has the second and the label of its own acquisition", async () => {
  const cluster = new Cluster(3, { label: "web-3" });
  const seconds: (string | undefined)[] = [];
  for (const label of [undefined, undefined, "other", undefined]) {
    const lock = await cluster.lock({ label });
    const [holder] = (await cluster.settle(cluster.redlock.inspect("a"))).holders;
    assertEquals(holder.label, label ?? "web-3");
    seconds.push(holder.acquiredAt?.toISOString());
    await cluster.settle(lock.release());
    await cluster.advance(60_000);
  }
  assertEquals(new Set(seconds).size, 4);
});

Deno.test("LockHeldError.holders has this client's own lock, if that is in the way", async () => {
  const { cluster, lock } = await locked(3, { label: "web-3:1234" });
  const error = await cluster.rejection(cluster.redlock.acquire("a", { waitMs: 20 }));
  assert(error instanceof LockHeldError);
  assertEquals(error.holders, [describeHolder(lock.value)]);
  await cluster.close();
});
