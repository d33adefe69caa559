import { assertEquals } from "@std/assert";
import { ClientState, COOLDOWNS_MAX } from "../../../src/lock/client_state.ts";
import { LockOptions } from "../../../src/options.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

function newClient(): ClientState {
  const options = new LockOptions("create", { onEvent() {} });
  return new ClientState(new TimerWheel(new FakeClock()), [], options);
}

Deno.test("a cooldown that begins again lasts longer, and never shorter", () => {
  const client = newClient();
  client.beginCooldown(["a", "b"], 100);
  client.beginCooldown(["a"], 50);
  client.beginCooldown(["b"], 200);
  assertEquals([client.cooldownLeftMs(["a"]), client.cooldownLeftMs(["b"])], [100, 200]);
});

Deno.test("of too many cooldowns the oldest is forgotten", () => {
  const client = newClient();
  for (let index = 0; index < COOLDOWNS_MAX; index++) client.beginCooldown([`${index}`], 100);
  client.beginCooldown(["new"], 100);
  assertEquals(["0", "1", "new"].map((key) => client.cooldownLeftMs([key])), [0, 100, 100]);
});
