/**
 * Names on the site: the address of each page, and the anchors of headings. The pages are written
 * for GitHub, so their links are translated.
 *
 * @module
 */

/**
 * Where a file of the project is shown. The README is published elsewhere too, so it links to the
 * pages by this.
 */
export const REPOSITORY_URL = "https://github.com/hasp-lock/redlock/blob/main/";

/** Pages whose address on the site is not their name. */
const RENAMED: Readonly<Record<string, string>> = {
  "README.md": "index",
  "docs/README.md": "manual",
};

/**
 * A heading's anchor as GitHub makes it: lower case, without punctuation, with hyphens for spaces.
 */
export function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{Letter}\p{Number}\s_-]/gu, "").replaceAll(" ", "-");
}

/** The name of a page on the site, or `undefined` if the file is no page of the site. */
export function siteName(path: string): string | undefined {
  return RENAMED[path] ?? path.match(/^docs\/([\w-]+)\.md$/u)?.[1];
}

/**
 * Translates a link of the README or of a page in `docs/` to one that works on the site.
 *
 * @param link The link as it is written.
 * @param page The page it is on, such as `docs/options.md`.
 * @returns An address below the site's root for its own pages and pictures; for other files of the
 * project, where GitHub shows them; any other link as it is.
 */
export function siteLink(link: string, page: string): string {
  const url = new URL(link, `${REPOSITORY_URL}${page}`);
  if (link.startsWith("#") || !url.href.startsWith(REPOSITORY_URL)) return link;
  const path = decodeURIComponent(url.pathname.slice(new URL(REPOSITORY_URL).pathname.length));
  const name = siteName(path);
  if (name !== undefined) return `/${name === "index" ? "" : name}${url.hash}`;
  const picture = path.match(/^docs\/([\w/-]+\.(?:svg|png))$/u)?.[1];
  return picture === undefined ? url.href : `/${picture}`;
}
