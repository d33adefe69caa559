import { assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { run } from "./support/run.ts";
import { SCENARIOS } from "./support/scenarios.ts";
import { timelineHtml } from "./support/timeline.ts";

Deno.test("timelineHtml() makes a page that needs nothing else and escapes what it shows", async () => {
  const [scenario] = SCENARIOS;
  const html = timelineHtml(await run(scenario.plan, true), `<${scenario.id}> & "so on"`);
  assertStringIncludes(html, "<h1>&#60;P1&#62; &#38; &#34;so on&#34;</h1>");
  assertStringIncludes(html, "3 nodes, 2 clients, 1 fault, 12 locks: no violation");
  assertEquals(html.match(/(?:src|href)\s*=|@import|url\(|<script/gu), null);
  const bars = html.match(/<i class="\w+" style="left:[\d.]+%;right:[\d.]+%;top:\d+px/gu);
  assertGreater(bars?.length, 8);
  assertStringIncludes(html, "client-1 writes to a, which client-2 holds");
});
