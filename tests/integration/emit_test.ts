/** What dnt is given. */

import { assertEquals } from "@std/assert";
import { dirname } from "node:path";
import { type DntOptions, emitThroughDnt } from "../../scripts/package/emit.ts";
import { readConfig } from "../../scripts/package/manifest.ts";
import { makeFolder } from "../support/command_line.ts";

Deno.test("emitThroughDnt() gives dnt an import map in a folder of its own, and removes it", async () => {
  let folder = "";
  let beside: string[] = [];
  const build = async ({ importMap }: DntOptions) => {
    folder = dirname(importMap);
    beside = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  };
  await using out = await makeFolder();
  await emitThroughDnt({ build }, await readConfig(), out.path);
  assertEquals(beside, ["import_map.json"]);
  assertEquals(await Deno.lstat(folder).catch((error) => error.name), "NotFound");
});
