/**
 * The README and the pages of docs/, read by a Markdown parser: what the tests of this folder
 * compare with the source.
 */

import MarkdownIt from "markdown-it";
import { anchorOf } from "../../scripts/docs/names.ts";

export { REPOSITORY_URL } from "../../scripts/docs/names.ts";

/** The project's folder. */
export const ROOT = new URL("../../", import.meta.url);

/** One fence of code. */
export interface Fence {
  readonly page: string;
  /** The line of its first line of code. */
  readonly line: number;
  readonly language: string;
  /** What stands behind the language: how the fence is tested. */
  readonly marks: readonly string[];
  readonly code: string;
}

/** One table. */
export interface Table {
  readonly page: string;
  readonly line: number;
  /** The heading that it stands under. */
  readonly heading: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** One page. */
export interface Page {
  /** Its path below the project's folder. */
  readonly path: string;
  readonly text: string;
  readonly fences: readonly Fence[];
  readonly tables: readonly Table[];
  /** The anchors of its headings, as GitHub makes them. */
  readonly anchors: readonly string[];
  /** The targets of its links. */
  readonly links: readonly string[];
  /** Text that was meant to be a link: it shows a path or brackets. */
  readonly strayLinks: readonly string[];
  /** Lines that begin like a table's row and are none. */
  readonly strayRows: readonly number[];
}

type Token = ReturnType<typeof markdown.parse>[number];

const markdown = new MarkdownIt();

/** Every page that people read: the README, docs/, the community files and the simulator's page. */
export const PAGES: readonly Page[] = [
  "README.md",
  ...namesIn("docs"),
  ...namesIn(".github"),
  "tests/simulation/README.md",
].map(readPage);

/** The README and the manual, whose code is run and whose tables are compared. */
export const MANUAL: readonly Page[] = PAGES.filter(({ path }) => !/^(?:\.|tests\/)/u.test(path));

/** The fences of the manual. */
export const FENCES: readonly Fence[] = MANUAL.flatMap(({ fences }) => fences);

/**
 * The fences of the manual with this mark, and in this language if one is named.
 *
 * @throws {Error} If there is none.
 */
export function fencesMarked(mark: string, language?: string): Fence[] {
  const fences = FENCES.filter((fence) =>
    fence.marks.includes(mark) && (language === undefined || fence.language === language)
  );
  if (fences.length === 0) throw new Error(`No fence is marked ${mark}`);
  return fences;
}

/** The code of those fences, one after the other. */
export function codeMarked(mark: string, language?: string): string {
  return fencesMarked(mark, language).map(({ code }) => code).join("");
}

/** Where a fence is, for the names of tests. */
export function titleOf({ page, line, language }: Fence): string {
  return `${page}:${line} (${language})`;
}

/** What an example says that it prints: the comments behind its `console.log` calls. */
export function promisedOutput(code: string): string[] {
  return [...code.matchAll(/\bconsole\.log\(.*\); \/\/ (.*)$/gmu)].map((match) => match[1]);
}

/** The tables of the manual with this heading above them or this first column. */
export function tablesOf(column: string): Table[] {
  return MANUAL.flatMap(({ tables }) => tables).filter(({ header }) => header[0] === column);
}

function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(new URL(`${folder}/`, ROOT))]
    .filter(({ name }) => name.endsWith(".md"))
    .map(({ name }) => `${folder}/${name}`)
    .sort();
}

function readPage(path: string): Page {
  const text = Deno.readTextFileSync(new URL(path, ROOT));
  const tokens = markdown.parse(text, {});
  const fences = tokens.filter(({ type }) => type === "fence").map((token) => {
    const [language = "", ...marks] = token.info.split(" ");
    return { page: path, line: token.map![0] + 2, language, marks, code: token.content };
  });
  return {
    path,
    text,
    fences,
    tables: tablesIn(path, tokens),
    anchors: anchorsIn(tokens),
    links: linksIn(tokens),
    strayLinks: strayLinksIn(tokens),
    strayRows: strayRowsIn(text, tokens),
  };
}

/** The text of an inline token without its marks. */
function plain(token: Token): string {
  return (token.children ?? []).map(({ content }) => content).join("");
}

function tablesIn(page: string, tokens: readonly Token[]): Table[] {
  const tables: Table[] = [];
  let heading = "";
  let cells: string[][] = [];
  tokens.forEach((token, index) => {
    if (token.type === "heading_open") heading = plain(tokens[index + 1]);
    if (token.type === "table_open") cells = [];
    if (token.type === "tr_open") cells.push([]);
    if (token.type === "th_open" || token.type === "td_open") {
      cells.at(-1)!.push(tokens[index + 1].content);
    }
    if (token.type !== "table_close") return;
    const opening = tokens.slice(0, index).findLast(({ type }) => type === "table_open")!;
    const [header, ...rows] = cells;
    tables.push({ page, line: opening.map![0] + 1, heading, header, rows });
  });
  return tables;
}

/** A second heading of one name is numbered. */
function anchorsIn(tokens: readonly Token[]): string[] {
  const seen = new Map<string, number>();
  return tokens.flatMap((token, index) => {
    if (token.type !== "heading_open") return [];
    const slug = anchorOf(plain(tokens[index + 1]));
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return [count === 0 ? slug : `${slug}-${count}`];
  });
}

function linksIn(tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ children }) => children ?? [])
    .filter(({ type }) => type === "link_open")
    .map((token) => String(token.attrGet("href")));
}

function strayLinksIn(tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ children }) => children ?? [])
    .filter(({ type, content }) => type === "text" && /\]\[|\]\(|\.\.\/|\.md#/u.test(content))
    .map(({ content }) => content);
}

function strayRowsIn(text: string, tokens: readonly Token[]): number[] {
  const ranges = tokens.filter(({ type }) => type === "table_open" || type === "fence")
    .map(({ map }) => map!);
  return text.split("\n").flatMap((line, index) => {
    const inside = ranges.some(([start, end]) => start <= index && index < end);
    return !inside && /^\s*\|/u.test(line) ? [index + 1] : [];
  });
}
