import { assertEquals, assertRejects } from "@std/assert";
import { Redlock } from "../../../mod.ts";
import { check, forceRelease, list } from "../../../src/operate/mod.ts";
import { Cluster } from "../../support/cluster.ts";

const CALLS: Readonly<Record<string, (redlock: Redlock) => Promise<unknown>>> = {
  "check nodes": (redlock) => check(redlock),
  "list locks": (redlock) => list(redlock).next(),
  "release lock": (redlock) => forceRelease(redlock, "a", { holder: "00000000" }),
};

for (const [attempt, call] of Object.entries(CALLS)) {
  Deno.test(`operate: to ${attempt}, a client is needed, and neither a copy nor a proxy of one`, async () => {
    const { redlock } = new Cluster();
    for (const wrong of [undefined, {}, Object.create(Redlock.prototype), new Proxy(redlock, {})]) {
      const error = await assertRejects(() => call(wrong as Redlock), TypeError);
      assertEquals(
        error.message,
        `Cannot ${attempt} as it needs a Redlock of this copy of the package: no Proxy of one, and no method without its client`,
      );
    }
  });
}
