import { assertEquals } from "@std/assert";
import { Inbox } from "../../../src/testing/server/inbox.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/** An inbox on faked time, two connections, and what was served in order. */
class Bench {
  readonly clock = new FakeClock();
  readonly inbox = new Inbox(this.clock);
  readonly served: string[] = [];
  readonly one = {};
  readonly other = {};

  add(name: string, from = this.one): void {
    this.inbox.add(from, () => this.served.push(name));
  }
}

Deno.test("Inbox.drop() forgets what came over one connection, and clear() everything and the timer", () => {
  const bench = new Bench();
  bench.inbox.held = true;
  bench.add("a");
  bench.add("b", bench.other);
  bench.inbox.drop(bench.one);
  bench.inbox.held = false;
  assertEquals(bench.served, ["b"]);
  bench.inbox.delayMs = 60_000;
  bench.add("c");
  bench.inbox.clear();
  assertEquals(bench.clock.timers, 0);
  bench.inbox.delayMs = 0;
  assertEquals(bench.served, ["b"]);
});

Deno.test("Inbox.delayMs serves each in its time, and all that waits when it is set to 0", () => {
  const bench = new Bench();
  bench.inbox.delayMs = 100;
  bench.add("a");
  bench.clock.advanceSync(60);
  bench.add("b");
  bench.clock.advanceSync(39);
  assertEquals(bench.served, []);
  bench.clock.advanceSync(1);
  assertEquals(bench.served, ["a"]);
  bench.clock.advanceSync(60);
  assertEquals(bench.served, ["a", "b"]);
  bench.add("c");
  bench.inbox.delayMs = 0;
  assertEquals(bench.served, ["a", "b", "c"]);
});

Deno.test("Inbox.delayMs counts the time that was spent held back", () => {
  const bench = new Bench();
  bench.inbox.delayMs = 100;
  bench.inbox.held = true;
  bench.add("a");
  bench.clock.advanceSync(100);
  assertEquals(bench.served, []);
  bench.inbox.held = false;
  assertEquals(bench.served, ["a"]);
});
