import { assertEquals } from "@std/assert";
import { Inbox } from "../../../src/testing/server/inbox.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/** Two connections, and what was served in which order. */
function setUp() {
  const clock = new FakeClock();
  const inbox = new Inbox(clock);
  const served: string[] = [];
  const [one, other] = [{}, {}];
  const add = (from: object, name: string) => inbox.add(from, () => served.push(name));
  return { clock, inbox, served, one, other, add };
}

Deno.test("Inbox.add() serves at once", () => {
  const { served, one, add } = setUp();
  add(one, "a");
  assertEquals(served, ["a"]);
});

Deno.test("Inbox.held keeps everything back, and what was kept is served in the order of arrival", () => {
  const { inbox, served, one, other, add } = setUp();
  inbox.held = true;
  add(one, "a");
  add(other, "b");
  add(one, "c");
  assertEquals(served, []);
  inbox.held = false;
  assertEquals(served, ["a", "b", "c"]);
});

Deno.test("Inbox.drop() forgets what came over one connection", () => {
  const { inbox, served, one, other, add } = setUp();
  inbox.held = true;
  add(one, "a");
  add(other, "b");
  inbox.drop(one);
  inbox.held = false;
  assertEquals(served, ["b"]);
});

Deno.test("Inbox.delayMs serves each in its time, and nothing before what came first", () => {
  const { clock, inbox, served, one, add } = setUp();
  inbox.delayMs = 100;
  add(one, "a");
  clock.advanceSync(60);
  add(one, "b");
  clock.advanceSync(39);
  assertEquals(served, []);
  clock.advanceSync(1);
  assertEquals(served, ["a"]);
  clock.advanceSync(60);
  assertEquals(served, ["a", "b"]);
});

Deno.test("Inbox.delayMs counts the time that was spent held back", () => {
  const { clock, inbox, served, one, add } = setUp();
  inbox.delayMs = 100;
  inbox.held = true;
  add(one, "a");
  clock.advanceSync(100);
  assertEquals(served, []);
  inbox.held = false;
  assertEquals(served, ["a"]);
});

Deno.test("Inbox.delayMs set back to 0 serves all that waits", () => {
  const { inbox, served, one, add } = setUp();
  inbox.delayMs = 100;
  add(one, "a");
  inbox.delayMs = 0;
  assertEquals(served, ["a"]);
});

Deno.test("Inbox.clear() leaves nothing to serve and no timer", () => {
  const { clock, inbox, served, one, add } = setUp();
  inbox.delayMs = 60_000;
  add(one, "a");
  inbox.clear();
  assertEquals(clock.timers, 0);
  inbox.delayMs = 0;
  assertEquals(served, []);
});
