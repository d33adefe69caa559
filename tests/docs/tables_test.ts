/** The tables of the README and docs/ say what the source says. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import * as hasp from "../../mod.ts";
import { createRedlock } from "../../mod.ts";
import * as redis from "../../src/redis/mod.ts";
import { resolveClientOptions } from "../../src/redis/client_options.ts";
import { LockOptions, type RedlockOptions } from "../../src/options.ts";
import { listFiles } from "../support/source_code.ts";
import { PAGES, REPOSITORY_URL, ROOT, type Table, tablesOf } from "./pages.ts";
import { membersOf, objectsOf, stringsOf } from "./source.ts";

type Options = Record<string, unknown>;

/** Every name in backquotes in a cell. */
function codes(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/gu)].map(([, code]) => code);
}

/** A number as the pages write it, with spaces between thousands. */
function number(text: string): number {
  return text === "Infinity" ? Infinity : Number(text.replaceAll(/[\s\u202f]/gu, ""));
}

function tableUnder(heading: string, column: string): Table {
  const table = tablesOf(column).find((table) => table.heading === heading);
  assert(table, `no table of "${column}" under "${heading}"`);
  return table;
}

/** The rows of every table whose first column is `column`, by what stands in it in backquotes. */
function rowsOf(column: string): [name: string, cells: readonly string[]][] {
  return tablesOf(column).flatMap(({ rows }) =>
    rows.flatMap((row) => codes(row[0]).map((name) => [name, row] as [string, readonly string[]]))
  );
}

const allOptions = tablesOf("option").filter(({ heading }) => heading === "All options");

Deno.test("docs: the tables of options name every option once", () => {
  const [ofCalls, ofClient] = allOptions.map(({ rows }) => rows.map(([name]) => codes(name)[0]));
  assertEquals(ofCalls.toSorted(), membersOf("RedlockOptions").toSorted());
  const own = membersOf("ClientOptions").filter(isOptionOfCreateRedlock);
  assertEquals(ofClient.toSorted(), own.toSorted());
});

function isOptionOfCreateRedlock(name: string): boolean {
  try {
    createRedlock(["redis://127.0.0.1"], { [name]: undefined });
    return true;
  } catch {
    return false; // as its name is unknown
  }
}

Deno.test("docs: the table of the client's own options has all of them, with their defaults", () => {
  const { rows } = tableUnder("The client by itself", "option");
  assertEquals(rows.map(([name]) => codes(name)[0]), membersOf("ClientOptions"));
  const resolved = { ...resolveClientOptions() } as unknown as Options;
  for (const [name, value] of rows) {
    const option = codes(name)[0];
    if (/^[\d ]+$/u.test(value)) assertEquals(resolved[option], number(value), option);
  }
  assertEquals(rows.filter(([, value]) => /^[\d ]+$/u.test(value)).length, 4);
  const [, factor] = rows.find(([name]) => name === "`replyTimeoutMs`")![1].match(/^(\d+) × /u)!;
  assertEquals(resolved.replyTimeoutMs, Number(factor) * Number(resolved.stallTimeoutMs));
});

for (const [name, cell, range] of allOptions[0].rows) {
  const option = codes(name)[0];
  Deno.test(`docs: ${option} has the default and the range of the table`, () => {
    checkDefault(option, cell);
    checkRange(option, range);
  });
}

Deno.test("docs: connectTimeoutMs has the default and the range of the table", () => {
  const [, value, range] = allOptions[1].rows.find(([name]) => name === "`connectTimeoutMs`")!;
  assertEquals(resolveClientOptions({}).connectTimeoutMs, number(value));
  assertEquals(range, "> 0");
  assertThrows(() => resolveClientOptions({ connectTimeoutMs: 0 }));
});

function resolved(options: Options): Options {
  return { ...new LockOptions("test", options as RedlockOptions).defaults };
}

function checkDefault(option: string, cell: string): void {
  if (option === "nodeTimeoutMs") {
    const [divisor, least, most] = [...cell.matchAll(/\d[\d ]*/gu)].map(([text]) => number(text));
    const given = [10, 10_000, 86_400_000];
    const expected = given.map((ttlMs) => Math.min(Math.max(ttlMs / divisor, least), most));
    assertEquals(given.map((ttlMs) => resolved({ ttlMs, driftFactor: 0 })[option]), expected);
  } else if (option === "label") {
    // the client's, not the options'
    assertEquals([cell, resolved({})[option]], ["`host:pid`", ""]);
  } else if (option === "autoExtend") {
    // `using` and `acquire` have defaults of their own
    assertEquals(resolved({})[option], undefined);
  } else {
    const [text = cell] = codes(cell);
    const values: Options = {
      "–": undefined,
      "true": true,
      "false": false,
      '""': "",
      '"exclusive"': "exclusive",
    };
    const expected = text in values ? values[text] : number(text.replace(" (off)", ""));
    assertEquals(resolved({})[option], expected);
  }
}

function checkRange(option: string, range: string): void {
  const accepts = (value: unknown) => resolved({ driftFactor: 0, [option]: value });
  const refuses = (value: unknown) => assertThrows(() => accepts(value));
  const kinds: Record<string, unknown> = {
    boolean: true,
    string: "a",
    function: () => {},
    "an `AbortSignal`": new AbortController().signal,
  };
  refuses({});
  if (range in kinds) return void accepts(kinds[range]);
  if (range.startsWith('`"')) {
    codes(range).map((text) => JSON.parse(text)).forEach(accepts);
    return void refuses("another");
  }
  const [, least] = range.match(/(?:≥|>) (\d+)/u) ?? [];
  const between = range.match(/(\d[\d ]*) to (\d[\d ]*)/u);
  if (between) {
    const [low, high] = between.slice(1).map(number);
    [low, high].forEach(accepts);
    [low - 1, high + 1].forEach(refuses);
  } else if (range === "0, or ≥ `ttlMs`") {
    [0, 30_000].forEach(accepts);
    [-1, 1, 29_999].forEach(refuses);
  } else if (range === "0 to `ttlMs`") {
    [0, 30_000].forEach(accepts);
    [-1, 30_001].forEach(refuses);
  } else {
    assert(least !== undefined, `range "${range}" of ${option} is not understood`);
    (range.includes("≥") ? accepts : refuses)(number(least));
    refuses(number(least) - 1);
  }
  if (range.includes("< 1")) refuses(1);
  if (range.includes("integer")) refuses(20.5);
  (range.includes("Infinity") ? accepts : refuses)(Infinity);
}

Deno.test("docs: the tables of errors name every code, each with its class", () => {
  const shown = new Map<string, string>();
  for (const [name, [, code]] of rowsOf("error")) {
    if (codes(code).length > 0) shown.set(name, codes(code)[0]);
  }
  for (const [name, code] of shown) assertEquals(codeOf(name), code, name);
  const all = [...stringsOf("RedlockErrorCode"), ...stringsOf("RedisErrorCode")];
  assertEquals([...shown.values()].toSorted(), all.toSorted());
});

function codeOf(name: string): string {
  return errorOf(name).code;
}

function errorOf(name: string): { code: string; help: string } {
  const Constructor = ({ ...redis, ...hasp } as unknown as Record<
    string,
    new (message: string, details?: object) => { code: string; help: string }
  >)[name];
  return name === "ReplyError" ? new Constructor("") : new Constructor("", { resources: [] });
}

Deno.test("docs: the help of every error is a section of the page of errors", () => {
  const page = PAGES.find(({ path }) => path === "docs/errors.md")!;
  for (const name of ["RedlockError", "LockHeldError", "QuorumError", "LockLostError"]) {
    const [address, anchor] = errorOf(name).help.split("#");
    assertEquals(address, `${REPOSITORY_URL}${page.path}`);
    assert(page.anchors.includes(anchor), anchor);
  }
});

Deno.test("docs: the table of losses names every reason", () => {
  const shown = tableUnder("LOCK_LOST", "`reason`").rows.flatMap(([name]) => codes(name));
  assertEquals(shown.toSorted(), stringsOf("LockLostReason").toSorted());
});

Deno.test("docs: the table of events names every event with every field", () => {
  const expected = objectsOf("RedlockEvent").map(({ type, fields }) => {
    return [type, fields.filter((name) => name !== "type" && name !== "resources").toSorted()];
  });
  const shown = tableUnder("All events", "`type`").rows
    .map(([type, , fields]) => [codes(type)[0], codes(fields).toSorted()]);
  assertEquals(new Map(shown as [string, string[]][]), new Map(expected as [string, string[]][]));
});

Deno.test("docs: the table of votes names every outcome", () => {
  const shown = tableUnder("Votes", "`outcome`").rows.flatMap(([name]) => codes(name));
  assertEquals(shown.toSorted(), stringsOf("Vote", "outcome").toSorted());
});

Deno.test("docs: the table of findings names every code", () => {
  const shown = tablesOf("`code`").flatMap(({ rows }) => rows.flatMap(([name]) => codes(name)));
  assertEquals(shown.toSorted(), stringsOf("FindingCode").toSorted());
});

Deno.test("docs: the README's list of calls names every member", () => {
  const [, text] = PAGES[0].text.split("\n## Calls\n");
  const [list, sentence] = text.split("\n\n").filter((part) => part.includes("`"));
  const calls = codes(list.replaceAll("\n", " "));
  const named = new Set(calls.map((call) => call.replace(/\(.*$/u, "").replace(/^.*\./u, "")));
  const members = [...membersOf("Redlock"), ...membersOf("Lock")];
  assertEquals(members.filter((member) => !named.has(member)), []);
  assert(sentence.includes("all are locked"));
});

for (
  const [name, heading] of [
    ["TestNode", "What a test can do to a node"],
    ["FaultProxy", "A network with faults"],
  ]
) {
  Deno.test(`docs: the table of the calls of a ${name} names every member`, () => {
    const calls = tableUnder(heading, "call").rows.flatMap(([call]) => codes(call))
      .map((call) => call.replace(/\(.*$/u, "").split(".").at(-1)!);
    assertEquals(calls.toSorted(), membersOf(name).toSorted());
  });
}

Deno.test("docs: the table of a custom node names every member of LockNode", () => {
  const members = tableUnder("What a node must do", "member").rows
    .flatMap(([member]) => codes(member)).map((member) => member.replace(/\(.*$/u, ""));
  assertEquals(members.toSorted(), membersOf("LockNode").toSorted());
});

/** The constants behind the rows of the table of limits, by how the row begins. */
const LIMITS: Record<string, readonly string[]> = {
  "nodes of one client": ["NODES_MAX"],
  "resources of one lock": ["RESOURCES_MAX"],
  "resources of which a call locks any one": ["POOL_MAX"],
  "shortest and longest": ["TTL_MS_MIN", "TTL_MS_MAX"],
  "commands that wait": ["QUEUE_LENGTH_MAX"],
  "attempts, extensions and releases": ["ROUNDS_MAX"],
  "resources in cooldown": ["COOLDOWNS_MAX"],
  "silence after which": ["STALL_TIMEOUT_MS_MIN"],
  "bytes and elements": ["REPLY_BYTES_MAX", "REPLY_ELEMENTS_MAX"],
  "lifetime of a queue": ["QUEUE_TTL_MS"],
};

for (const [limit, value] of tableUnder("Limits", "limit").rows) {
  Deno.test(`docs: the limit of "${limit}" is that of the source`, async () => {
    const [, names] = Object.entries(LIMITS).find(([start]) => limit.startsWith(start))!;
    const shown = value.replace(" ms", "").split(",").map(number);
    assertEquals(shown, await Promise.all(names.map(constant)));
  });
}

Deno.test("docs: the page of figures rounds up the size that the check of the package allows", async () => {
  const { text } = PAGES.find(({ path }) => path === "docs/evidence.md")!;
  const shown = [...text.matchAll(/at most (\d+) kB/gu)].map(([, kilobytes]) => Number(kilobytes));
  assertEquals(shown, [Math.ceil(await constant("GZIP_BYTES_MAX") / 1_000)]);
});

/** Files whose constants are meant where others have the same names. */
const LIMITS_OF: Record<string, string> = {
  REPLY_BYTES_MAX: "src/create_redlock.ts",
  REPLY_ELEMENTS_MAX: "src/create_redlock.ts",
  GZIP_BYTES_MAX: "scripts/package/sizes.ts",
  ROUNDS_MAX: "src/quorum/round.ts",
};

/** The value of a constant that stands once or with one value in the library. */
async function constant(name: string): Promise<number> {
  const values = new Set<number>();
  const pattern = new RegExp(`const ${name} = ([\\d_* ]+);`, "gu");
  const paths = name in LIMITS_OF ? [LIMITS_OF[name]] : listFiles("src", /\.ts$/u);
  for (const path of paths) {
    const source = await Deno.readTextFile(new URL(path, ROOT));
    for (const [, text] of source.matchAll(pattern)) {
      const factors = text.replaceAll("_", "").split("*").map(Number);
      values.add(factors.reduce((product, factor) => product * factor));
    }
  }
  assertEquals(values.size, 1, name);
  return [...values][0];
}
