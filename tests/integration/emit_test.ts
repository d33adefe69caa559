/** What dnt is given. */

import { assertEquals } from "@std/assert";
import { dirname } from "node:path";
import { type DntOptions, emitThroughDnt } from "../../scripts/package/emit.ts";
import { readConfig } from "../../scripts/package/manifest.ts";

Deno.test("emitThroughDnt() gives dnt an import map in a folder of its own, and removes it", async () => {
  let folder = "";
  let beside: string[] = [];
  const build = async ({ importMap }: DntOptions) => {
    folder = dirname(importMap);
    beside = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  };
  const out = await Deno.makeTempDir();
  try {
    await emitThroughDnt({ build }, await readConfig(), out);
  } finally {
    await Deno.remove(out, { recursive: true });
  }
  assertEquals(beside, ["import_map.json"]);
  assertEquals(await Deno.lstat(folder).catch((error) => error.name), "NotFound");
});
