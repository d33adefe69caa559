/** The site that `deno task docs` makes: its links, and how it looks and works in a browser. */

import { assert, assertEquals, assertGreater } from "@std/assert";
import { buildSite } from "../../scripts/docs/build.ts";
import { checkLinks } from "../../scripts/docs/links.ts";
import { REPOSITORY_URL, siteLink } from "../../scripts/docs/names.ts";
import { serveSite } from "../../scripts/docs/serve.ts";
import { MANUAL } from "../docs/pages.ts";
import { findBrowser, startBrowser, type Tab } from "./browser.ts";

/** A base as on GitHub's pages, which links must not leave. */
const BASE = "/redlock/";
/** The widths that pages must fit, in pixels: a phone's and a desk's. */
const WIDTHS = [390, 1_280, 1_440];
/** What strangers look for, and the page that they must find; one of the first five will do. */
const SEARCHES: Readonly<Record<string, string>> = {
  payment: "recipes",
  cron: "recipes",
  leader: "recipes",
  throttle: "recipes",
  kubernetes: "kubernetes",
  elasticache: "managed-redis",
  postgres: "recipes",
  nestjs: "nestjs",
};
/** Set to a folder to have pictures of the pages there. */
const picturesFolder = Deno.env.get("SITE_PICTURES");

Deno.test("the site has every page and no broken link, and works on a phone and on a desk", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "hasp-site-" });
  try {
    await buildSite(folder, BASE);
    await t.step("no link is broken", async () => {
      const { followed, broken } = await checkLinks(folder, BASE);
      assertEquals(broken, []);
      assertGreater(followed, 1_000);
    });
    const name = await findBrowser();
    await t.step({
      name: name ? "in a browser" : "in a browser (there is no Chromium)",
      ignore: name === undefined,
      fn: async (t) => {
        await using server = serveSite(folder, BASE);
        await using browser = await startBrowser(name!);
        await lookAround(t, browser.tab, server.address);
      },
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function lookAround(t: Deno.TestContext, tab: Tab, address: string): Promise<void> {
  for (const width of WIDTHS) {
    await t.step(`no page is wider than ${width} pixels`, async () => {
      const names = MANUAL.map(({ path }) => siteLink(`${REPOSITORY_URL}${path}`, "README.md"));
      for (const name of [...names, "/api/@hasp/redlock/classes/Redlock"]) {
        await show(tab, address + name.slice(1), width);
        await keepPicture(tab, `${name.slice(1).replaceAll("/", "-") || "first"}-${width}`);
        const wide = await tab.read<number>("document.documentElement.scrollWidth");
        assert(wide <= width, `${name} is ${wide} pixels wide`);
        const cut = await tab.read<string[]>(
          "[...document.querySelectorAll('td')].filter((cell) => " +
            "cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.textContent)",
        );
        assertEquals(cut, [], `cells of ${name} that are cut off`);
      }
    });
  }
  await t.step(
    "the first page has a title of its own, and pages of the API have defaults",
    async () => {
      await show(tab, address, 1_440);
      assertEquals(await tab.read("document.title"), "Hasp: a distributed lock");
      await show(tab, `${address}api/@hasp/redlock/interfaces/RedlockOptions`, 1_440);
      const defaults = await tab.read<string[]>(
        "[...document.querySelectorAll('[id^=default]')].map((it) => it.nextElementSibling.innerText)",
      );
      assertEquals(defaults.slice(0, 3), ["30000", "10000", "no signal"]);
    },
  );
  await t.step("on a phone the cells of a wide table have the names of their columns", async () => {
    await show(tab, `${address}errors`, 390);
    const names = await tab.read<string[]>(
      "[...document.querySelectorAll('table')[0].rows[1].cells].map((cell) => cell.dataset.column)",
    );
    assertEquals(names, ["error", "code", "meaning", "HTTP status"]);
  });
  await t.step("search finds a heading and a symbol of the API", async () => {
    await show(tab, address, 1_440);
    for (const [words, found] of [["replace a node", "runbook"], ["LockHeldError", "api/"]]) {
      await search(tab, words);
      const first = "document.querySelector('a.result')";
      await tab.until(`${first}?.innerText.includes(${JSON.stringify(words.slice(1))})`);
      const address = await tab.read<string>(`${first}.getAttribute("href")`);
      assert(address.startsWith(BASE + found), address);
      await keepPicture(tab, `search-${found.replace("/", "")}`);
    }
  });
  for (const [words, page] of Object.entries(SEARCHES)) {
    await t.step(`search for "${words}" finds the page ${page}`, async () => {
      await show(tab, address, 1_440);
      await search(tab, words);
      const links = "[...document.querySelectorAll('a.result')].slice(0, 5)";
      await tab.until(`${links}.some((it) => it.getAttribute("href").includes("/${page}"))`);
    });
  }
  await t.step("lines of code of 100 columns fit in a window of 1280 pixels", async () => {
    for (const { path } of MANUAL) {
      const name = siteLink(`${REPOSITORY_URL}${path}`, "README.md");
      await show(tab, address + name.slice(1), 1_280);
      const cut = await tab.read<string[]>(
        "[...document.querySelectorAll('.vp-doc pre')].filter((it) => " +
          "it.innerText.split('\\n').every((line) => line.length <= 100) && " +
          "it.scrollWidth > it.clientWidth).map((it) => it.innerText)",
      );
      assertEquals(cut, [], name);
    }
  });
  await t.step(
    "the first page begins with a picture, and the API has its symbols beside it",
    async () => {
      await show(tab, address, 1_280);
      const tops = await tab.read<number[]>(
        "['img', 'pre'].map((it) => document.querySelector(`.vp-doc ${it}`).getBoundingClientRect().top)",
      );
      assert(tops[0] < tops[1] && tops[1] < 900, String(tops));
      await show(tab, `${address}api/@hasp/redlock/classes/Redlock`, 1_280);
      const text = await tab.read<string>("document.querySelector('.VPSidebar').innerText");
      assert(text.includes("LockHeldError"));
      const code = await tab.read<string>("document.querySelector('.vp-doc').innerText");
      assert(!code.includes("@std/assert") && !/\bassert\w*\(/u.test(code));
    },
  );
  await t.step("light becomes dark", async () => {
    await show(tab, address, 1_440);
    const isDark = "document.documentElement.classList.contains('dark')";
    assertEquals(await tab.read(isDark), false);
    await tab.read("document.querySelector('.VPSwitchAppearance').click()");
    await tab.until(isDark);
    await keepPicture(tab, "dark");
  });
  await t.step("on a phone a menu leads to every page", async () => {
    await show(tab, address, 390);
    await tab.read("document.querySelector('.VPLocalNav .menu').click()");
    await tab.until("document.querySelector('.VPSidebar.open')");
    await keepPicture(tab, "menu");
    const links = await tab.read<string[]>(
      "[...document.querySelectorAll('.VPSidebar a')].map((link) => link.getAttribute('href'))",
    );
    const index = ["README.md", "docs/README.md"];
    for (const { path } of MANUAL.filter(({ path }) => !index.includes(path))) {
      const link = siteLink(`${REPOSITORY_URL}${path}`, "README.md");
      assert(links.includes(BASE + link.slice(1)), `${path} is not in the menu`);
    }
  });
}

/** Shows a page, and waits until its scripts have taken it over. */
async function show(tab: Tab, address: string, width: number): Promise<void> {
  await tab.open(address, width);
  await tab.until("document.querySelector('#app')?.__vue_app__");
}

async function search(tab: Tab, words: string): Promise<void> {
  if (!await tab.read<boolean>("Boolean(document.querySelector('.search-input'))")) {
    await tab.read("document.querySelector('.DocSearch-Button').click()");
    await tab.until("document.querySelector('.search-input')");
  }
  await tab.read(`{
    const input = document.querySelector('.search-input');
    input.value = ${JSON.stringify(words)};
    input.dispatchEvent(new Event('input'));
  }`);
}

async function keepPicture(tab: Tab, name: string): Promise<void> {
  if (picturesFolder === undefined) return;
  await Deno.mkdir(picturesFolder, { recursive: true });
  await Deno.writeFile(`${picturesFolder}/${name}.png`, await tab.picture());
}
