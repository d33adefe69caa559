/** Links, tables and the length of the pages. */

import { assert, assertEquals, assertGreater } from "@std/assert";
import { existsSync } from "node:fs";
import { SCENARIOS } from "../simulation/support/scenarios.ts";
import { codeMarked, FENCES, MANUAL, type Page, PAGES, REPOSITORY_URL, ROOT } from "./pages.ts";

const README_LINES_MAX = 170;
const RECIPE_LINES_MAX = 20;

const readme = PAGES[0];

Deno.test("docs: the pages are there, with examples and tables", () => {
  assertGreater(MANUAL.length, 12);
  assertGreater(FENCES.length, 40);
  assertGreater(MANUAL.flatMap(({ tables }) => tables).length, 25);
});

Deno.test("docs: the README has at most 170 lines, and its examples at most 20", () => {
  assert(readme.text.trimEnd().split("\n").length <= README_LINES_MAX);
  const long = readme.fences.filter(({ code }) =>
    code.trimEnd().split("\n").length > RECIPE_LINES_MAX
  );
  assertEquals(long.map(({ line }) => line), []);
});

Deno.test("docs: the map of the source shows every folder, and no other", () => {
  const code = codeMarked("areas");
  const shown = new Set([...code.matchAll(/\b(\w+)\//gu)].map(([, name]) => name));
  const folders = [...Deno.readDirSync(new URL("src/", ROOT))]
    .filter(({ isDirectory }) => isDirectory).map(({ name }) => name);
  assertEquals(shown, new Set([...folders, "scripts"])); // the folder within redis_node
});

/** Turns of phrase that readers stumble over, each seen in earlier pages. */
const STUMBLES =
  /\b(whoever|anew|in vain|is none|of none|for so long|as ever|be had|also not|tells? of|lets? \w+ be|hears? of|the doctor)\b/giu;

Deno.test("docs: the manual is in plain English", () => {
  const found = MANUAL.flatMap(({ path, text }) => {
    const prose = text.replaceAll(/^```.*?^```$/gmsu, "");
    return [...prose.matchAll(STUMBLES)].map(([words]) => `${path}: ${words}`);
  });
  assertEquals(found, []);
});

for (const page of PAGES) {
  Deno.test(`docs: every link of ${page.path} leads to a file and a heading that exist`, () => {
    assertEquals(page.links.filter((link) => isBroken(page, link)), []);
    assertEquals(page.strayLinks, []);
  });

  Deno.test(`docs: every row of a table in ${page.path} renders as one, with all of its cells`, () => {
    assertEquals(page.strayRows, []);
    const lines = page.text.split("\n");
    for (const { line, header, rows } of page.tables) {
      const source = lines.slice(line - 1, line + 1 + rows.length);
      assertEquals(source.map(cellCount), source.map(() => header.length), `${page.path}:${line}`);
    }
  });
}

Deno.test("docs: the README, which is also published, links to no page relatively", () => {
  assertEquals(readme.links.filter((link) => !/^(https:|#)/u.test(link)), []);
});

Deno.test("docs: each picture is on a page, and shows a scenario of the simulator", async () => {
  const names = SCENARIOS.map(({ name }) => name);
  const shown = MANUAL.flatMap(({ text }) =>
    [...text.matchAll(/!\[[^\]]{20,}\]\(pictures\/(\w+\.svg)\)/gu)].map(([, file]) => file)
  );
  const files = (await Array.fromAsync(Deno.readDir(new URL("docs/pictures", ROOT))))
    .map(({ name }) => name);
  assertEquals(shown.toSorted(), files.toSorted());
  for (const file of files) {
    const svg = await Deno.readTextFile(new URL(`docs/pictures/${file}`, ROOT));
    const [, scenario] = /<title>([^<]+)<\/title>/u.exec(svg) ?? [];
    assert(scenario !== undefined && names.includes(scenario), `${file}: ${scenario}`);
  }
});

Deno.test("docs: the manual names every page of its own", () => {
  const index = PAGES.find(({ path }) => path === "docs/README.md")!;
  const names = MANUAL.map(({ path }) => path.replace("docs/", ""))
    .filter((name) => name !== "README.md");
  assertEquals(names.filter((name) => !index.links.includes(name)), []);
});

/** How many cells a row's text has: one more than the bars between them that are not escaped. */
function cellCount(row: string): number {
  return row.replace(/^\s*\|/u, "").replace(/\|\s*$/u, "").split(/(?<!\\)\|/u).length;
}

function isBroken(page: Page, link: string): boolean {
  const local = link.startsWith(REPOSITORY_URL)
    ? new URL(link.slice(REPOSITORY_URL.length), ROOT)
    : new URL(link, new URL(page.path, ROOT));
  if (local.protocol !== "file:") return false;
  const anchor = decodeURIComponent(local.hash.slice(1));
  local.hash = "";
  if (!existsSync(local)) return true;
  if (anchor === "") return false;
  const target = PAGES.find(({ path }) => new URL(path, ROOT).href === local.href);
  return !target?.anchors.includes(anchor);
}
