import { assert, assertEquals } from "@std/assert";
import { hueOf } from "../../../src/cli/timeline/drawing.ts";

Deno.test("hueOf() gives clients hues that differ, none of them the red of a loss", () => {
  const hues = Array.from({ length: 100 }, (_, client) => hueOf(client));
  assert(hues.every((hue) => hue >= 30 && hue < 320), String(hues));
  assertEquals(new Set(hues).size, hues.length);
});
