/**
 * Patterns of Lua as regular expressions on byte strings.
 *
 * Both try alternatives in the same order, so both find the same. Refused are `%b`, `%f`,
 * references to captures, captures of positions, `%D` and the like in a set, and zero bytes.
 *
 * @module
 */
import { literal } from "../commands/glob.ts";
import { keeping, UnsupportedError } from "./values.ts";

/** The members of each class of bytes. */
const CLASSES: Readonly<Record<string, string>> = {
  a: "A-Za-z",
  d: "0-9",
  l: "a-z",
  s: "\\t-\\r ",
  u: "A-Z",
  w: "0-9A-Za-z",
  x: "0-9A-Fa-f",
};
/** A parenthesis, an end, or what stands for one byte (a set, a class, a byte) and how often. */
const PART = /\(\)|[()]|\$$|(?:\[(\^|(?!\^))((?:%[^]|[^%])(?:%[^]|[^%\]])*)\]|(%?[^]))([-*+?]?)/gu;
const MEMBER = /%[^]|([^%])-([^])|[^]/gu;

/** Most bytes of a pattern. */
const PATTERN_BYTES_MAX = 1_000;

/** Compiles a pattern. */
function compilePattern(pattern: string): RegExp {
  const isAnchored = pattern[0] === "^";
  const refused = (what: string) =>
    new UnsupportedError(`${what} in the pattern '${pattern.replace(/[^ -~]/gu, "?")}'`);
  /** The members of a class or of a single byte, and whether all others are meant. */
  const membersOf = (item: string): [members: string, isNegated: boolean] => {
    if (!/^%[A-Za-z0-9]/u.test(item)) return [literal(item.at(-1)!), false];
    const letter = item[1].toLowerCase();
    if (!Object.hasOwn(CLASSES, letter)) throw refused(`'${item}'`);
    return [CLASSES[letter], item[1] !== letter];
  };
  const setOf = (set: string) =>
    set.replace(MEMBER, (member, from: string | undefined, to: string) => {
      if (from !== undefined) return from <= to ? `${literal(from)}-${literal(to)}` : "";
      const [members, isNegated] = membersOf(member);
      if (isNegated) throw refused(`'${member}' in a set`);
      return members;
    });
  if (pattern.length > PATTERN_BYTES_MAX) {
    throw new UnsupportedError(`a pattern of more than ${PATTERN_BYTES_MAX} bytes`);
  }
  if (pattern.includes("\0")) throw refused("a zero byte"); // Lua ends it there
  const source = pattern.slice(isAnchored ? 1 : 0)
    .replace(PART, (part, not, set: string | undefined, item: string, often: string) => {
      if (part === "()" || item === "[" || item === "%") throw refused(`'${item ?? part}'`);
      if (part === "(" || part === ")") return part;
      if (part === "$") return "(?![^])";
      const repeats = often === "-" ? "*?" : often;
      if (set !== undefined) return `[${not}${setOf(set)}]${repeats}`;
      if (item === ".") return `[^]${repeats}`;
      const [members, isNegated] = membersOf(item);
      return `[${isNegated ? "^" : ""}${members}]${repeats}`;
    });
  try {
    return new RegExp(source, isAnchored ? "y" : "g");
  } catch {
    throw refused("a parenthesis without the other one");
  }
}

const compiled = keeping(compilePattern);

/** The first match of a pattern at or behind an index, with its captures. */
export function findPattern(text: string, pattern: string, from: number): RegExpExecArray | null {
  const expression = compiled(pattern);
  expression.lastIndex = from;
  return expression.exec(text);
}
