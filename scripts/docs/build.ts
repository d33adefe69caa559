/**
 * Makes the site: the README as its first page, the pages of `docs/`, and a page for each symbol of
 * the API.
 *
 * @module
 */

import MarkdownIt from "markdown-it";
import { basename, dirname, join, relative } from "node:path";
import { filesIn, findTools, ROOT, succeed } from "../package/tools.ts";
import type { SidebarGroup, SidebarLink, SiteSettings } from "./config.ts";
import { siteLink, siteName } from "./names.ts";

/** How long one of the two generators may take, in milliseconds. */
const GENERATE_WITHIN_MS = 180_000;

/**
 * Builds the site.
 *
 * @param outDir The folder to write it to; what was in there is removed.
 * @param base The path below which the site will be served.
 * @throws {Error} If a generator fails, for example because of a link to a page that does not
 * exist.
 */
export async function buildSite(outDir: string, base: string): Promise<void> {
  const tools = await findTools("site");
  const work = await Deno.makeTempDir({ dir: dirname(tools), prefix: "site-" });
  try {
    await copyPages(work);
    const api = await writeApi(tools, work);
    await writeConfig(work, { base, outDir, manual: await manualGroups(), api });
    await runTool(work, [join(tools, "vitepress/bin/vitepress.js"), "build", work]);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/**
 * The README with its first picture before its first example, so that the first page shows at a
 * glance what it is.
 */
function firstPage(readme: string): string {
  const [picture] = readme.match(/^!\[.*\]\(.*\)\n\n/mu)!;
  return readme.replace(picture, "").replace(/^```/mu, `${picture}\`\`\``);
}

/** Copies the pages under their names on the site, and what else is in `docs/`. */
async function copyPages(work: string): Promise<void> {
  await Deno.writeTextFile(
    join(work, "index.md"),
    firstPage(await Deno.readTextFile(join(ROOT, "README.md"))),
  );
  for (const path of await filesIn(join(ROOT, "docs"))) {
    const page = siteName(`docs/${path}`);
    const target = join(work, page ? `${page}.md` : `public/${path}`);
    await Deno.mkdir(dirname(target), { recursive: true });
    await Deno.copyFile(join(ROOT, "docs", path), target);
  }
}

/** Writes the pages of the API, and returns the links to its modules and their symbols. */
async function writeApi(tools: string, work: string): Promise<SidebarGroup> {
  const { exports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const entryPoints = Object.values<string>(exports).map((path) => join(ROOT, path));
  const tsconfig = join(work, "tsconfig.json");
  const compilerOptions = {
    ...{ target: "esnext", module: "esnext", moduleResolution: "bundler" },
    ...{ lib: ["esnext", "dom"], types: [], strict: true },
    ...{ allowImportingTsExtensions: true, noEmit: true },
  };
  await Deno.writeTextFile(tsconfig, JSON.stringify({ compilerOptions, files: entryPoints }));
  const options = {
    entryPoints,
    tsconfig,
    out: join(work, "api"),
    basePath: ROOT,
    plugin: [
      join(tools, "typedoc-plugin-markdown/dist/index.js"),
      join(ROOT, "scripts/docs/typedoc_plugin.ts"),
    ],
    ...{ name: "API", readme: "none", entryFileName: "index", skipErrorChecking: true },
    ...{
      preservedTypeAnnotationTags: ["@throws", "@default"],
      useCodeBlocks: true,
      disableSources: true,
    },
    ...{ excludeExternals: true, hideBreadcrumbs: true, hidePageHeader: true },
    ...{ indexFormat: "table", jsDocCompatibility: { defaultTag: false } },
    ...{ sort: ["kind", "source-order"], logLevel: "Error" },
  };
  const file = join(work, "typedoc.json");
  await Deno.writeTextFile(file, JSON.stringify(options));
  await runTool(work, [join(tools, "typedoc/dist/cli.js"), "--options", file]);
  const pages = await filesIn(options.out);
  const items = Object.keys(exports).map((path) => {
    const text = path.replace(".", "@hasp/redlock");
    return { text, link: `/api/${text}/`, collapsed: true, items: symbolLinks(text, pages) };
  });
  return { text: "API", items };
}

/** The links to the symbols of a module, by name; each has a page in a folder of its kind. */
function symbolLinks(module: string, pages: readonly string[]): SidebarLink[] {
  return pages.flatMap((page) => {
    const [, folder, symbol] = page.match(/^(.*)\/[\w-]+\/(\w+)\.md$/u) ?? [];
    return folder === module && symbol !== "index"
      ? [{ text: symbol, link: `/api/${page.replace(/\.md$/u, "")}` }]
      : [];
  }).sort((one, other) => one.text < other.text ? -1 : 1);
}

/** The groups of pages in the manual's index, each page by its own heading. */
async function manualGroups(): Promise<SidebarGroup[]> {
  const tokens = new MarkdownIt().parse(await Deno.readTextFile(join(ROOT, "docs/README.md")), {});
  const groups: { text: string; items: SidebarLink[] }[] = [];
  for (const [at, { type, tag, children }] of tokens.entries()) {
    if (type === "heading_open" && tag === "h2") {
      groups.push({ text: tokens[at + 1].content, items: [] });
    }
    if (type !== "inline" || groups.length === 0) continue;
    for (const token of (children ?? []).filter(({ type }) => type === "link_open")) {
      const link = siteLink(String(token.attrGet("href")), "docs/README.md");
      const text = await Deno.readTextFile(join(ROOT, "docs", `${basename(link)}.md`));
      groups.at(-1)!.items.push({ text: text.match(/^# (.*)$/mu)![1], link });
    }
  }
  return groups;
}

async function writeConfig(work: string, settings: SiteSettings): Promise<void> {
  const folder = join(work, ".vitepress");
  await Deno.mkdir(folder);
  const config = relative(folder, join(ROOT, "scripts/docs/config.ts"));
  await Deno.writeTextFile(
    join(folder, "config.ts"),
    `import { siteConfig } from ${JSON.stringify(config)};\n` +
      `export default siteConfig(${JSON.stringify(settings)});\n`,
  );
}

/** Runs a program of the tools in the folder beside them, where it finds what it imports. */
async function runTool(work: string, args: readonly string[]): Promise<void> {
  await succeed(Deno.execPath(), ["run", "-A", "--node-modules-dir=manual", ...args], {
    cwd: work,
    withinMs: GENERATE_WITHIN_MS,
  });
}
