import { assertEquals } from "@std/assert";
import { Cooldowns, COOLDOWNS_MAX } from "../../../src/lock/cooldowns.ts";
import { FakeClock } from "../../support/fake_clock.ts";

function setUp(): { clock: FakeClock; cooldowns: Cooldowns } {
  const clock = new FakeClock();
  return { clock, cooldowns: new Cooldowns(clock) };
}

Deno.test("Cooldowns.leftMs() is the longest of the keys', and 0 where none is let be", async () => {
  const { clock, cooldowns } = setUp();
  cooldowns.begin(["a", "b"], "one", 100);
  cooldowns.begin(["c"], "two", 300);
  await clock.advance(40);
  const sets = [["a"], ["a", "c"], ["b", "d"], ["d"]];
  assertEquals(sets.map((keys) => cooldowns.leftMs(keys)), [60, 260, 60, 0]);
  await clock.advance(60);
  assertEquals(sets.map((keys) => cooldowns.leftMs(keys)), [0, 200, 0, 0]);
});

Deno.test("Cooldowns.begin() again lengthens and never shortens", () => {
  const { cooldowns } = setUp();
  cooldowns.begin(["a"], "one", 100);
  cooldowns.begin(["a"], "two", 50);
  assertEquals(cooldowns.leftMs(["a"]), 100);
  cooldowns.begin(["a"], "three", 200);
  assertEquals(cooldowns.leftMs(["a"]), 200);
});

Deno.test("Cooldowns.begin() for no time does nothing", () => {
  const { cooldowns } = setUp();
  cooldowns.begin(["a"], "one", 0);
  assertEquals([cooldowns.size, cooldowns.leftMs(["a"])], [0, 0]);
});

Deno.test("Cooldowns.end() ends what the same lock began, and no other", () => {
  const { cooldowns } = setUp();
  cooldowns.begin(["a", "b"], "one", 100);
  cooldowns.begin(["b"], "two", 200);
  cooldowns.end(["a", "b"], "one");
  assertEquals([cooldowns.leftMs(["a"]), cooldowns.leftMs(["b"])], [0, 200]);
});

Deno.test("Cooldowns forget what is over when more is to be remembered", async () => {
  const { clock, cooldowns } = setUp();
  for (let index = 0; index < 50; index++) cooldowns.begin([`old ${index}`], "one", 100);
  await clock.advance(100);
  cooldowns.begin(["new"], "two", 100);
  assertEquals([cooldowns.size, cooldowns.leftMs(["new"])], [1, 100]);
});

Deno.test("Cooldowns forget the oldest where there are too many", () => {
  const { cooldowns } = setUp();
  for (let index = 0; index <= COOLDOWNS_MAX; index++) cooldowns.begin([`${index}`], "one", 100);
  assertEquals(cooldowns.size, COOLDOWNS_MAX);
  const left = ["0", "1", `${COOLDOWNS_MAX}`].map((key) => cooldowns.leftMs([key]));
  assertEquals(left, [0, 100, 100]);
});
