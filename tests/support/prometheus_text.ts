/**
 * Prometheus' text format, and the names in queries.
 *
 * @module
 */

/** One line with a value. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE =
  /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>-?[\d.e+-]+|NaN|[+-]Inf)(?: \d+)?$/u;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/gu;

/**
 * Reads a page.
 *
 * @throws {Error} If a line is neither a comment nor a sample, or a sample has no type.
 */
export function parsePage(page: string): Sample[] {
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of page.split("\n").filter((line) => line !== "")) {
    const [, family, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/u.exec(line) ?? [];
    if (family) types.set(family, type);
    if (line.startsWith("# ")) continue;
    const { name, labels = "", value } = LINE.exec(line)?.groups ?? {};
    if (!name) throw new Error(`No sample: ${line}`);
    const found = [...labels.matchAll(LABEL)];
    if (found.map(([text]) => text).join("") !== labels) throw new Error(`No labels: ${line}`);
    if (!types.has(name) && types.get(name.replace(/_(count|sum|bucket)$/u, "")) !== "histogram") {
      throw new Error(`No type: ${line}`);
    }
    samples.push({
      name,
      labels: Object.fromEntries(found.map(([, name, value]) => [name, value])),
      value: Number(value),
    });
  }
  return samples;
}

/** A metric in a query: its name, and the labels by which it is selected or grouped. */
export interface Selector {
  readonly name: string;
  readonly matchers: Readonly<Record<string, string>>;
}

/** The metrics of a query, which all begin with `redlock_`. */
export function selectorsOf(query: string): Selector[] {
  const ungrouped = query.replaceAll(/\bby \([^)]*\)/gu, "");
  return [...ungrouped.matchAll(/\b(redlock_\w+)(?:\{([^}]*)\})?(?!\w*=)/gu)].map(
    ([, name, matchers = ""]) => ({
      name,
      matchers: Object.fromEntries(
        [...matchers.matchAll(LABEL)].map(([, name, value]) => [name, value]),
      ),
    }),
  );
}

/** The labels by which a query groups. */
export function groupsOf(query: string): string[] {
  return [...query.matchAll(/\bby \(([^)]*)\)/gu)].flatMap(([, names]) => names.split(/,\s*/u));
}
