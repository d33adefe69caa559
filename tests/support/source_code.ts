/**
 * Reads TypeScript files for the tests that keep the source in shape: just enough of the language to tell code
 * from comments and strings.
 *
 * @module
 */

/** One file and what was made of it. */
export interface SourceFile {
  /** Its path from the root of the project, such as `src/redis/mod.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text with every comment blanked out; as many lines as before. */
  readonly uncommented: string;
  /** The text with the insides of strings, templates and regular expressions blanked out too. */
  readonly code: string;
  /** The specifiers of what it imports or re-exports, types too. */
  readonly imports: readonly string[];
}

const ROOT = new URL("../../", import.meta.url);

/** Reads one file of the project. */
export function readSource(path: string): SourceFile {
  const text = Deno.readTextFileSync(new URL(path, ROOT));
  const { uncommented, code } = blank(text);
  return { path, text, uncommented, code, imports: importsOf(uncommented) };
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

/** The beginnings of what is not code, and the patterns of the whole of it. */
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//uy;
const STRING = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/uy;
const REGEXP = /\/(?![/*])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/uy;

function blank(text: string): { uncommented: string; code: string } {
  let uncommented = "";
  let code = "";
  /** For each template that is open: how many braces are open inside its current expression. */
  const templates: number[] = [];
  let inTemplate = false;
  for (let at = 0; at < text.length;) {
    const letter = text[at];
    let taken = letter;
    let shown = letter;
    if (inTemplate) {
      if (letter === "\\") taken = text.slice(at, at + 2);
      shown = hidden(taken);
      if (text.startsWith("${", at)) {
        taken = shown = "${";
        templates.push(0);
        inTemplate = false;
      } else if (letter === "`") {
        shown = letter;
        inTemplate = false;
      }
    } else if (matchAt(COMMENT, text, at)) {
      taken = matchAt(COMMENT, text, at)!;
      uncommented += hidden(taken);
      code += hidden(taken);
      at += taken.length;
      continue;
    } else if (letter === '"' || letter === "'") {
      taken = matchAt(STRING, text, at) ?? letter;
      shown = letter + hidden(taken.slice(1, -1)) + letter;
    } else if (letter === "/" && /(^|[(,=:[!&|?{};>]|\breturn)\s*$/u.test(code.slice(-40))) {
      taken = matchAt(REGEXP, text, at) ?? letter;
      shown = hidden(taken);
    } else if (letter === "`") {
      inTemplate = true;
    } else if (templates.length > 0 && letter === "{") {
      templates[templates.length - 1]++;
    } else if (templates.length > 0 && letter === "}" && templates.at(-1)! > 0) {
      templates[templates.length - 1]--;
    } else if (templates.length > 0 && letter === "}") {
      templates.pop();
      inTemplate = true;
    }
    uncommented += taken;
    code += shown;
    at += taken.length;
  }
  return { uncommented, code };
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function hidden(text: string): string {
  return text.replaceAll(/[^\n]/gu, " ");
}
