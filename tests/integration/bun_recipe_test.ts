/** The recipe of the manual for Bun's own client. */

import { assertEquals, assertGreater } from "@std/assert";
import { fileURLToPath } from "node:url";
import { CROWD_SIZE, expectExclusion } from "../support/crowd_size.ts";
import { findRuntimes, startProgram } from "../support/programs.ts";
import { startServerControl } from "../support/server_control.ts";

/** How long a program in Bun may take, in milliseconds: more than ten times what it needs. */
const BUN_WITHIN_MS = 120_000 + 100 * CROWD_SIZE.locks;
/** Where Bun finds the library by its name. */
const BUN_CONFIG = fileURLToPath(new URL("../support/bun.tsconfig.json", import.meta.url));

const bun = (await findRuntimes()).find(({ name }) => name === "bun");
const skipped = bun?.missing === undefined ? "" : ` (skipped: ${bun.missing})`;

Deno.test({
  name: `Bun's RedisClient: every case of testLockNode${skipped}`,
  ignore: bun?.missing !== undefined,
  async fn(t) {
    const lines = await outputInBun("suite");
    const cases = lines.map((line): { name: string; error?: string } => JSON.parse(line));
    assertGreater(cases.length, 20);
    for (const { name, error } of cases) await t.step(name, () => assertEquals(error, undefined));
  },
});

Deno.test({
  name:
    `Bun's RedisClient: connects and subscribes again after a restart, and replaces a silent connection${skipped}`,
  ignore: bun?.missing !== undefined,
  async fn() {
    const [line] = await outputInBun("reconnect");
    const { atFirst, afterRestart } = JSON.parse(line);
    assertGreater(afterRestart, atFirst);
  },
});

Deno.test({
  name:
    `Bun's RedisClient: no two clients hold the lock at once while nodes die and hang${skipped}`,
  ignore: bun?.missing !== undefined,
  async fn() {
    const [line] = await outputInBun("crowd", JSON.stringify(CROWD_SIZE));
    expectExclusion(JSON.parse(line));
  },
});

/** Runs the recipe for Bun's client, and returns the lines that it writes. */
async function outputInBun(...[what, ...rest]: string[]): Promise<string[]> {
  await using control = startServerControl();
  const flags = [`--tsconfig-override=${BUN_CONFIG}`];
  const args = [what, control.url, ...rest];
  await using program = startProgram("bun_recipe.ts", args, { runtime: bun, flags });
  const { code, stdout, stderr } = await program.end(BUN_WITHIN_MS);
  assertEquals([code, stderr], [0, ""]);
  return stdout.trimEnd().split("\n");
}
