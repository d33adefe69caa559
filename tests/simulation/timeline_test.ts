import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { run } from "./support/run.ts";
import { SCENARIOS } from "./support/scenarios.ts";
import { timelineHtml } from "./support/timeline.ts";

const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];
const mayRun = (await Deno.permissions.query({ name: "run" })).state === "granted";
const browser = mayRun ? await findBrowser() : undefined;

async function findBrowser(): Promise<string | undefined> {
  for (const name of BROWSERS) {
    try {
      const command = new Deno.Command(name, { args: ["--version"], stdin: "null" });
      if ((await command.output()).success) return name;
    } catch {
      // Not on this machine.
    }
  }
  return undefined;
}

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
  name: browser
    ? "the page draws its bars in a browser"
    : `the page draws its bars in a browser (${
      mayRun ? "there is no Chromium" : "no permission to run programs"
    })`,
  ignore: browser === undefined,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "hasp-timeline-" });
    try {
      const file = join(folder, "run.html");
      await Deno.writeTextFile(file, await page());
      const { stdout } = await new Deno.Command(browser!, {
        args: [
          ...["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"],
          ...[`--user-data-dir=${join(folder, "profile")}`, `file://${file}`],
        ],
        stdin: "null",
        stderr: "null",
        signal: AbortSignal.timeout(30_000),
      }).output();
      const dom = new TextDecoder().decode(stdout);
      const drawn = Number(dom.match(/data-drawn="(\d+)"/u)?.[1]);
      assert(drawn >= 9, `only ${drawn} bars are drawn`);
      assertMatch(dom, /client-1 writes to a, which client-2 holds/u);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
