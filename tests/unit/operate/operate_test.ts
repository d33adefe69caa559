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
      const [type, hint] = wrong
        ? ["Object", "neither a Proxy of one nor one of another copy of this package will do"]
        : ["undefined", "call methods on their client"];
      assertEquals(
        error.message,
        `Cannot ${attempt} as 'redlock' must be a Redlock: current type is '${type}'; ${hint}`,
      );
    }
  });
}
