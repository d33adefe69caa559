/**
 * The settings of VitePress, which makes the site. It loads this module itself, through a generated
 * file.
 *
 * @module
 */

import { anchorOf, siteLink } from "./names.ts";

/**
 * Room for lines of code of 100 columns from a window of 1280 pixels on. On a narrow one, each cell
 * of a table has a line of its own. If there are three columns or more, it begins with the name of
 * its column.
 */
const STYLE = `
  :root { --vp-sidebar-width: 248px }
  .vp-doc div[class*="language-"] code { font-size: 12.5px; padding: 0 16px }
  .vp-doc td { min-width: 7rem; vertical-align: top }
  .vp-doc td:last-child { min-width: 12rem }
  .vp-doc p > img[src*="demo"] { max-width: 688px; width: 100% }
  .VPSidebarItem.level-2 .text { font-size: 13px !important }
  @media (min-width: 1280px) {
    .VPDoc.has-aside { padding: 32px 16px 0 24px !important }
    .VPDoc.has-aside > .container > .content { padding: 0 0 128px !important }
    .VPDoc.has-aside .content-container { max-width: 804px !important }
    .VPDoc.has-aside .aside { max-width: 190px; padding-left: 8px !important }
    .VPDoc.has-aside .aside-container { width: 180px !important }
  }
  @media (max-width: 640px) {
    .vp-doc :is(table, tbody, tr, td) { display: block }
    .vp-doc thead { display: none }
    .vp-doc tr { padding: 8px 0 }
    .vp-doc td { border: 0; padding: 2px 12px }
    .vp-doc table:has(th:nth-child(3)) td + td::before {
      content: attr(data-column) ": ";
      color: var(--vp-c-text-2);
    }
  }
`;

/** A closed hasp: a ring through a staple. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <rect x="4" y="13" width="24" height="16" rx="4" fill="#1d6fb8"/>
  <path d="M9 13V10a7 7 0 0 1 14 0v3" fill="none" stroke="#1d6fb8" stroke-width="4"/>
  <path d="M11 21h10" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`;

const TITLE = "Hasp: a distributed lock";
const DESCRIPTION =
  "A distributed lock on one Redis server or several, for Node, Deno, Bun and Cloudflare Workers";
/** Where the site is. */
const SITE_URL = "https://hasp-lock.github.io/redlock/";

/** What the head of each page has; the tags are what other sites show of a link. */
const HEAD = [
  ["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }],
  ...Object.entries({
    "og:title": TITLE,
    "og:description": DESCRIPTION,
    "og:type": "website",
    "og:url": SITE_URL,
    "og:image": `${SITE_URL}social.png`,
    "twitter:card": "summary_large_image",
  }).map(([property, content]) => ["meta", { property, content }]),
  ["style", {}, STYLE],
];

/**
 * A page must have all the words; only long ones may be misspelt, because a short one resembles too
 * many others.
 */
const SEARCH = {
  combineWith: "AND",
  fuzzy: (word: string) => word.length > 4 ? 0.2 : false,
  prefix: true,
  boost: { title: 4, text: 2, titles: 1 },
};

/** A link beside the pages, and what is below it. */
export interface SidebarLink {
  readonly text: string;
  readonly link: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarLink[];
}

/** One group of links beside the pages. */
export interface SidebarGroup {
  readonly text: string;
  readonly items: readonly SidebarLink[];
}

/** What differs between sites. */
export interface SiteSettings {
  /** The path below which the site is served: begins and ends with a slash. */
  readonly base: string;
  /** The folder that the site is written to. */
  readonly outDir: string;
  readonly manual: readonly SidebarGroup[];
  readonly api: SidebarGroup;
}

/** The part of a Markdown parser that is used here. */
interface Markdown {
  core: {
    ruler: {
      push(
        name: string,
        rule: (state: { tokens: Token[]; env: { relativePath: string } }) => void,
      ): void;
    };
  };
}

interface Token {
  readonly type: string;
  content: string;
  readonly children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** Where a page of the site comes from, for its links. */
function sourceOf(relativePath: string): string {
  if (relativePath === "index.md") return "README.md";
  return relativePath === "manual.md" ? "docs/README.md" : `docs/${relativePath}`;
}

/** The space between groups of digits, at which no line must break. */
const THOUSANDS = /(?<=\d) (?=\d{3}\b)/gu;
const NARROW_SPACE = "\u202f";

/** Gives each cell of a table the name of its column. */
function nameColumns(tokens: readonly Token[]): void {
  let names: string[] = [];
  let column = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.type === "thead_open") names = [];
    else if (token.type === "th_open") names.push(tokens[index + 1].content.replaceAll("`", ""));
    else if (token.type === "tr_open") column = 0;
    else if (token.type === "td_open") token.attrSet("data-column", names[column++]);
  }
}

function adaptPages(markdown: Markdown): void {
  markdown.core.ruler.push("site", ({ tokens, env }) => {
    if (env.relativePath.startsWith("api/")) return; // these pages are written for the site
    nameColumns(tokens);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "text") token.content = token.content.replaceAll(THOUSANDS, NARROW_SPACE);
      for (const name of ["href", "src"]) {
        const link = token.attrGet(name);
        if (link !== null) token.attrSet(name, siteLink(link, sourceOf(env.relativePath)));
      }
    }
  });
}

/** The settings for one site, as VitePress takes them. */
export function siteConfig({ base, outDir, manual, api }: SiteSettings): object {
  return {
    base,
    outDir,
    title: "Hasp",
    titleTemplate: ":title · Hasp",
    transformPageData: ({ relativePath }: { relativePath: string }) =>
      relativePath === "index.md" ? { title: TITLE, titleTemplate: false } : {},
    description: DESCRIPTION,
    lang: "en",
    cleanUrls: true,
    head: HEAD,
    markdown: {
      // Comments show what examples print, so they must be easy to read.
      theme: { light: "github-light", dark: "github-dark-high-contrast" },
      config: adaptPages,
      anchor: { slugify: anchorOf },
      languageAlias: { TypeScript: "ts", JavaScript: "js", conf: "ini" },
    },
    themeConfig: {
      search: { provider: "local", options: { miniSearch: { searchOptions: SEARCH } } },
      outline: [2, 3],
      nav: [
        { text: "Manual", link: "/manual" },
        { text: "API", link: "/api/" },
      ],
      sidebar: { "/": [...manual, api], "/api/": [api, ...manual] },
      socialLinks: [{ icon: "github", link: "https://github.com/hasp-lock/redlock" }],
    },
  };
}
