import { assertEquals } from "@std/assert";
import { Cooldowns, COOLDOWNS_MAX } from "../../../src/lock/client_state.ts";
import { FakeClock } from "../../support/fake_clock.ts";

function newCooldowns(): Cooldowns {
  return new Cooldowns(new FakeClock());
}

Deno.test("Cooldowns.begin() lengthens and never shortens", () => {
  const cooldowns = newCooldowns();
  cooldowns.begin(["a", "b"], 100);
  cooldowns.begin(["a"], 50);
  cooldowns.begin(["b"], 200);
  assertEquals([cooldowns.leftMs(["a"]), cooldowns.leftMs(["b"])], [100, 200]);
});

Deno.test("Cooldowns forget the oldest if there are too many", () => {
  const cooldowns = newCooldowns();
  for (let index = 0; index < COOLDOWNS_MAX; index++) cooldowns.begin([`${index}`], 100);
  cooldowns.begin(["new"], 100);
  assertEquals(["0", "1", "new"].map((key) => cooldowns.leftMs([key])), [0, 100, 100]);
});
