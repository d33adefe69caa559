/**
 * What `deno task docs` makes of links and headings; tests/site builds the whole and looks at it.
 */

import { assertEquals } from "@std/assert";
import { checkLinks } from "../../scripts/docs/links.ts";
import { anchorOf, REPOSITORY_URL, siteLink } from "../../scripts/docs/names.ts";
import { makeFolder } from "../support/command_line.ts";

Deno.test("siteLink() leads to the site's own pages, and to GitHub for other files", () => {
  const links: [link: string, page: string, expected: string][] = [
    [`${REPOSITORY_URL}docs/safety.md#fencing-tokens`, "README.md", "/safety#fencing-tokens"],
    ["../README.md#calls", "docs/recipes.md", "/#calls"],
    ["README.md", "docs/recipes.md", "/manual"],
    ["options.md", "docs/recipes.md", "/options"],
    ["../src/errors.ts", "docs/errors.md", `${REPOSITORY_URL}src/errors.ts`],
    ["pictures/pause.svg", "docs/safety.md", "/pictures/pause.svg"],
    ["#votes", "docs/errors.md", "#votes"],
    ["https://redis.io/docs/", "README.md", "https://redis.io/docs/"],
  ];
  for (const [link, page, expected] of links) assertEquals(siteLink(link, page), expected);
});

Deno.test("anchorOf() makes GitHub's anchors", () => {
  assertEquals(anchorOf("Without `await using`"), "without-await-using");
  assertEquals(anchorOf("What wakes a call? (1, 2)"), "what-wakes-a-call-1-2");
});

Deno.test("checkLinks() finds links to pages, files and anchors that are missing", async () => {
  await using folder = await makeFolder();
  const links = [
    "there",
    "there#a",
    "there#b",
    "missing",
    "/redlock/x.js",
    "/there",
    "https://a.b",
  ];
  const page = links.map((link) => `<a href="${link}">`).join("");
  await Deno.writeTextFile(`${folder.path}/index.html`, page);
  await Deno.writeTextFile(`${folder.path}/there.html`, '<h2 id="a">');
  const { followed, broken } = await checkLinks(folder.path, "/redlock/");
  assertEquals(followed, 6);
  const wrong = ["there#b", "missing", "/redlock/x.js", "/there"];
  assertEquals(broken, wrong.map((link) => `the first page: ${link}`));
});
