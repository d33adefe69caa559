/** Reads files for the tests that keep the sources and the manual in shape. */
import jsTokens from "js-tokens";

/** One file and what was made of it; every text has as many lines as the file. */
export interface SourceFile {
  /** Its path from the root of the project, such as `src/redis/mod.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text without comments. */
  readonly uncommented: string;
  /** The text without comments, strings, templates and regular expressions. */
  readonly code: string;
  /**
   * What is written for people: comments and strings, or a page without `code` in its sentences.
   */
  readonly prose: string;
  /** The specifiers of what it imports or re-exports, types too. */
  readonly imports: readonly string[];
}

const ROOT = new URL("../../", import.meta.url);
const COMMENT = /Comment$/u;
const LITERAL = /^String|Template|^Regular/u;

/** Reads one file of the project. */
export function readSource(path: string): SourceFile {
  const text = Deno.readTextFileSync(new URL(path, ROOT));
  if (!path.endsWith(".ts")) {
    const prose = text.replaceAll(/`[^`\n]+`/gu, blank);
    return { path, text, uncommented: text, code: text, prose, imports: [] };
  }
  const tokens = [...jsTokens(text)];
  const without = (isHidden: (type: string) => boolean) =>
    tokens.map(({ type, value }) => isHidden(type) ? blank(value) : value).join("");
  const uncommented = without((type) => COMMENT.test(type));
  return {
    path,
    text,
    uncommented,
    code: without((type) => COMMENT.test(type) || LITERAL.test(type)),
    prose: without((type) => !COMMENT.test(type) && !LITERAL.test(type)),
    imports: importsOf(uncommented),
  };
}

/** The paths of all files under a folder of the project whose names match, in order. */
export function listFiles(folder: string, pattern: RegExp): string[] {
  const paths: string[] = [];
  for (const { name, isDirectory } of Deno.readDirSync(new URL(`${folder}/`, ROOT))) {
    const path = `${folder}/${name}`;
    if (isDirectory) paths.push(...listFiles(path, pattern));
    else if (pattern.test(name)) paths.push(path);
  }
  return paths.sort();
}

/** The path that a relative import of `from` leads to. */
export function resolveImport(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

/** A function and how many lines it takes. */
export interface FunctionLength {
  readonly line: number;
  readonly length: number;
}

const FUNCTION_HEAD =
  /\bfunction\b|=> \{$|^\s*\)(: .*)? \{$|^\s*[\w#\s[\].]+(<.*>)?\(.*\)(: .*)? \{$/u;
const NO_FUNCTION_HEAD = /^\s*(\} )?(else |)?(if|for|while|switch|catch|do|try|with)\b/u;

/** Every function of several lines, by the indentation that `deno fmt` gives it. */
export function functionLengths({ code }: SourceFile): FunctionLength[] {
  const lines = code.split("\n");
  return lines.flatMap((head, index) => {
    if (!head.endsWith("{") || !FUNCTION_HEAD.test(head) || NO_FUNCTION_HEAD.test(head)) return [];
    const indent = /^\s*/u.exec(head)![0];
    const end = lines.findIndex((line, at) => at > index && line.startsWith(`${indent}}`));
    return [{ line: index + 1, length: end - index + 1 }];
  });
}

function importsOf(uncommented: string): string[] {
  const statement =
    /^(?:import|export)\b[^;"'=]*?\bfrom\s*"([^"\n]+)";|^import\s*"([^"]+)";|\bimport\(\s*"([^"]+)"/gmu;
  return [...uncommented.matchAll(statement)].map(([, ...specifiers]) => specifiers.join(""));
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/gu, " ");
}
