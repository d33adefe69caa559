import { assertEquals } from "@std/assert";
import { VERSION } from "../../../src/cli/version.ts";

Deno.test("VERSION is the version in deno.json", async () => {
  const config = JSON.parse(await Deno.readTextFile("deno.json"));
  assertEquals(VERSION, config.version);
});
