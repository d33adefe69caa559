import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { findBrowser } from "../site/browser.ts";
import { makeFolder } from "../support/command_line.ts";
import { run } from "./support/run.ts";
import { SCENARIOS } from "./support/scenarios.ts";
import { timelineHtml } from "./support/timeline.ts";

const browser = await findBrowser();

async function page(): Promise<string> {
  const [scenario] = SCENARIOS;
  return timelineHtml(await run(scenario.plan, true), `<${scenario.id}> & "so on"`);
}

Deno.test("timelineHtml() makes a page that needs nothing else and escapes what it shows", async () => {
  const html = await page();
  assertStringIncludes(html, "<h1>&lt;P1&gt; &amp; &quot;so on&quot;</h1>");
  assertStringIncludes(html, "3 nodes, 2 clients, 1 fault, 12 locks: no violation");
  assertEquals(html.match(/(?:src|href)\s*=|@import|url\(/gu), null);
});

Deno.test({
  name: `the page draws its bars in a browser${browser ? "" : " (there is no Chromium)"}`,
  ignore: browser === undefined,
  fn: async () => {
    await using folder = await makeFolder();
    const file = join(folder.path, "run.html");
    await Deno.writeTextFile(file, await page());
    const { stdout } = await new Deno.Command(browser!, {
      args: [
        ...["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"],
        ...[`--user-data-dir=${join(folder.path, "profile")}`, `file://${file}`],
      ],
      stdin: "null",
      stderr: "null",
      signal: AbortSignal.timeout(30_000),
    }).output();
    const dom = new TextDecoder().decode(stdout);
    const drawn = Number(dom.match(/data-drawn="(\d+)"/u)?.[1]);
    assert(drawn >= 9, `only ${drawn} bars are drawn`);
    assertMatch(dom, /client-1 writes to a, which client-2 holds/u);
  },
});
