import { assertEquals } from "@std/assert";
import { Cooldowns, COOLDOWNS_MAX } from "../../../src/lock/client_state.ts";
import { FakeClock } from "../../support/fake_clock.ts";

function setUp(): { clock: FakeClock; cooldowns: Cooldowns } {
  const clock = new FakeClock();
  return { clock, cooldowns: new Cooldowns(clock) };
}

Deno.test("Cooldowns.begin() lengthens and never shortens", () => {
  const { cooldowns } = setUp();
  cooldowns.begin(["a", "b"], 100);
  cooldowns.begin(["a"], 50);
  cooldowns.begin(["b"], 200);
  assertEquals([cooldowns.leftMs(["a"]), cooldowns.leftMs(["b"])], [100, 200]);
});

Deno.test("Cooldowns forget what is over, and the oldest if there are too many", async () => {
  const { clock, cooldowns } = setUp();
  for (let index = 0; index < 50; index++) cooldowns.begin([`old ${index}`], 100);
  await clock.advance(100);
  for (let index = 0; index < COOLDOWNS_MAX; index++) cooldowns.begin([`${index}`], 100);
  assertEquals(cooldowns.size, COOLDOWNS_MAX);
  cooldowns.begin(["new"], 100);
  assertEquals(cooldowns.size, COOLDOWNS_MAX);
  assertEquals(["0", "1", "new"].map((key) => cooldowns.leftMs([key])), [0, 100, 100]);
});
