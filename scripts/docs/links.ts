/**
 * Looks for broken links in a built site.
 *
 * @module
 */

import { join } from "node:path";
import { filesIn } from "../package/tools.ts";

/** One page as it is served. */
interface BuiltPage {
  /** Its address below the site's base, such as `options`; empty for the first page. */
  readonly address: string;
  readonly ids: ReadonlySet<string>;
  readonly links: readonly string[];
}

/** A host name that no link has, because links below it are those of the site. */
const ORIGIN = "http://site.invalid";

/**
 * Finds the links that lead nowhere: to a page, a file or an anchor of the site that does not
 * exist.
 *
 * @param folder The site.
 * @param base The path below which it is served.
 * @returns How many links of the site were followed, and each broken one with the page that it is
 * on.
 */
export async function checkLinks(
  folder: string,
  base: string,
): Promise<{ followed: number; broken: string[] }> {
  const files = new Set(await filesIn(folder));
  const pages = new Map<string, BuiltPage>();
  for (const file of files) {
    if (!file.endsWith(".html")) continue;
    const page = readPage(file, await Deno.readTextFile(join(folder, file)));
    pages.set(page.address, page);
  }
  const isThere = (url: URL): boolean => {
    if (!url.pathname.startsWith(base)) return false;
    const path = decodeURIComponent(url.pathname.slice(base.length));
    const page = pages.get(path.replace(/\.html$/u, ""));
    if (page === undefined) return files.has(path) && url.hash === "";
    return url.hash === "" || page.ids.has(decodeURIComponent(url.hash.slice(1)));
  };
  let followed = 0;
  const broken: string[] = [];
  for (const { address, links } of pages.values()) {
    for (const link of links) {
      const url = new URL(link, `${ORIGIN}${base}${address}`);
      if (url.origin !== ORIGIN) continue;
      followed++;
      if (!isThere(url)) broken.push(`${address || "the first page"}: ${link}`);
    }
  }
  return { followed, broken };
}

function readPage(file: string, html: string): BuiltPage {
  const values = (pattern: RegExp) =>
    [...html.matchAll(pattern)].map(([, value]) => value.replaceAll("&amp;", "&"));
  return {
    address: file.replace(/(?:^|(?<=\/))index\.html$|\.html$/u, ""),
    ids: new Set(values(/\sid="([^"]*)"/gu)),
    links: values(/\s(?:href|src)="([^"]*)"/gu),
  };
}
