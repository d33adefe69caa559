/**
 * Patterns of names, as SCAN and PUBSUB take them.
 *
 * @module
 */

/**
 * A pattern of Redis as a regular expression: `*`, `?`, `[a-c]`, `[^a]`, and `\` before what is
 * meant literally.
 */
export function globOf(pattern: string): RegExp {
  const parts = pattern.matchAll(/\\([^])|\[(\^?)((?:\\[^]|[^\]\\])*)\]?|\*+|\?|([^])/gu);
  const source = [...parts].map(([part, escaped, not, set, plain]) => {
    if (part[0] === "*") return "[^]*";
    if (part === "?") return "[^]";
    if (set !== undefined) return classOf(not, set);
    return literal(escaped ?? plain);
  }).join("");
  return new RegExp(`^${source}$`);
}

function classOf(not: string, set: string): string {
  if (set === "") return not ? "[^]" : "[]";
  const members = set.replaceAll(/\\([^])|([^])-([^])|([^])/gu, (_, escaped, from, to, plain) => {
    if (from === undefined) return literal(escaped ?? plain);
    return [from, to].sort().map(literal).join("-");
  });
  return `[${not}${members}]`;
}

/** A byte that a regular expression takes literally. */
export function literal(byte: string): string {
  return `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
