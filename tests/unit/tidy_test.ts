import { assert, assertEquals, assertGreater } from "@std/assert";
import {
  functionLengths,
  listFiles,
  readSource,
  resolveImport,
  type SourceFile,
} from "../support/source_code.ts";

const FILE_LINES_MAX = 600;
const FUNCTION_LINES_MAX = 70;
/** Most modules of which each imports the next one's values, from `mod.ts` on. */
const CHAIN_MAX = 11;

/**
 * The areas from the bottom up, by the folders they are: an area imports from itself and from areas
 * above it in this list. `lock_node.ts` and its like are the seam between the algorithm and a
 * store, so `redis_node` has it, but nothing of the algorithm itself.
 */
const AREAS: readonly (readonly [name: string, path: RegExp, mayImport: readonly string[]])[] = [
  ["time", /^src\/time\//u, []],
  ["transport", /^src\/transport\//u, []],
  [
    "base",
    /^src\/(bounded_map|console_view|credentials|errors|events|holder|messages|options|printable|process_name|resources|stackless|validate|to_error|vote|console_warnings)\.ts$/u,
    ["time"],
  ],
  ["redis", /^src\/redis\//u, ["time", "transport", "base"]],
  ["seam", /^src\/quorum\/(lock_node|node_diagnosis|queue_ticket|quorum_node|outcome)\.ts$/u, [
    "time",
    "base",
  ]],
  ["quorum", /^src\/quorum\//u, ["time", "base", "seam"]],
  ["redis_node", /^src\/redis_node\//u, ["time", "base", "seam", "redis"]],
  ["fencing", /^src\/fencing\//u, ["time", "base", "seam", "quorum"]],
  ["waiting", /^src\/waiting\//u, ["time", "base", "seam", "quorum"]],
  [
    "lock",
    /^src\/lock\//u,
    ["time", "base", "seam", "quorum", "fencing", "waiting"],
  ],
  [
    "redlock",
    /^src\/(client_nodes|redlock)\.ts$/u,
    ["time", "base", "seam", "quorum", "fencing", "waiting", "lock"],
  ],
  [
    "operate",
    /^src\/operate\//u,
    ["time", "base", "seam", "quorum", "redis_node", "lock", "redlock"],
  ],
  [
    "preset",
    /^src\/create_redlock\.ts$/u,
    ["time", "base", "seam", "redis", "redis_node", "redlock", "transport"],
  ],
  ["otel", /^src\/otel\//u, ["time", "base"]],
  ["nodes", /^src\/nodes\//u, ["time", "base", "seam", "redis", "redis_node"]],
  ["upstash", /^src\/upstash\//u, ["time", "base", "nodes"]],
  [
    "testing",
    /^src\/testing\//u,
    ["time", "transport", "base", "seam", "redis", "redis_node", "fencing", "lock"],
  ],
  ["entry point", /^mod\.ts$/u, []],
  // A program on top of the library: it uses the entry points, as every other program does, and
  // small helpers.
  ["cli", /^src\/cli\//u, ["time", "base", "operate", "redis", "testing", "entry point"]],
];

const PATHS = ["mod.ts", ...listFiles("src", /\.ts$/u)];
const FILES: readonly SourceFile[] = PATHS.map(readSource);

/** The lines of `files` in one part of which there is `pattern`. */
function found(pattern: RegExp, files: readonly SourceFile[], part: Part): string[] {
  return files.flatMap((file) =>
    file[part].split("\n").flatMap((line, index) => {
      return pattern.test(line) ? [`${file.path}:${index + 1}: ${line.trim()}`] : [];
    })
  );
}

/** The paths of the files that have more lines than a file may have. */
function tooLong(files: readonly SourceFile[]): string[] {
  return files.filter(({ text }) => text.trimEnd().split("\n").length > FILE_LINES_MAX)
    .map(({ path }) => path);
}

function areaOf(path: string): (typeof AREAS)[number] | undefined {
  return AREAS.find(([, pattern]) => pattern.test(path));
}

/** Every import of one file of the source by another. */
function importsOf({ path, imports }: SourceFile): string[] {
  return imports.filter((specifier) => specifier.startsWith("."))
    .map((specifier) => resolveImport(path, specifier));
}

/** The modules that one imports, also by `import()`; not those whose types it needs alone. */
function valueImportsOf(path: string): string[] {
  const { uncommented } = FILES.find((file) => file.path === path)!;
  const statements = uncommented.matchAll(
    /^(?:import|export)\s+(?!type\b)(?:\{([^}]*)\}|\*[^"]*)\s*from\s+"(\.[^"]+)"/gmu,
  );
  const imported = [...statements]
    .filter(([, names]) => names?.split(",").some((name) => /^\s*(?!type\s)\w/u.test(name)) ?? true)
    .map(([, , specifier]) => specifier);
  const later = [...uncommented.matchAll(/(?<!typeof )\bimport\(\s*"(\.[^"]+)"/gu)]
    .map(([, specifier]) => specifier);
  return [...imported, ...later].map((specifier) => resolveImport(path, specifier));
}

Deno.test("tidy: the source is there", () => {
  assertGreater(FILES.length, 30);
  assertGreater(FILES.flatMap(functionLengths).length, 200);
  assertGreater(FILES.flatMap(({ imports }) => imports).length, 100);
});

Deno.test("tidy: no file has more than 600 lines", () => {
  assertEquals(tooLong(FILES), []);
});

Deno.test("tidy: no function has more than 70 lines", () => {
  const long = FILES.flatMap((file) =>
    functionLengths(file)
      .filter(({ length }) => length > FUNCTION_LINES_MAX)
      .map(({ line, length }) => `${file.path}:${line}: ${length} lines`)
  );
  assertEquals(long, []);
});

Deno.test("tidy: every private field is read, and not only written", () => {
  const unread = FILES.flatMap(({ path, uncommented }) =>
    [...uncommented.matchAll(/^ {2}(?:readonly )?(#\w+)(?=[?:!=; ])/gmu)].map(([, name]) => name)
      .filter((name) => !new RegExp(`\\.${name}\\b(?!\\s*=(?!=))`, "u").test(uncommented))
      .map((name) => `${path}: ${name}`)
  );
  assertEquals(unread, []);
});

Deno.test("tidy: every file begins with a module doc", () => {
  const bare = FILES.filter(({ text }) =>
    !/^\/\*\*\n(?: \*[^\n]*\n)+? \* @module\n \*\//u.test(text)
  );
  assertEquals(bare.map(({ path }) => path), []);
});

Deno.test("tidy: every module belongs to an area", () => {
  assertEquals(PATHS.filter((path) => areaOf(path) === undefined), []);
});

Deno.test("tidy: areas import in one direction", () => {
  const wrong = FILES.flatMap((file) => {
    const [name, , mayImport] = areaOf(file.path)!;
    return importsOf(file).filter((target) => {
      const area = areaOf(target)![0];
      // it exports what users need of every other area
      if (name === "entry point") return area === "cli";
      return area !== name && !mayImport.includes(area);
    }).map((target) => `${file.path} imports ${target}`);
  });
  assertEquals(wrong, []);
});

/**
 * What single areas may import: packages that the npm package bundles into the command line, and
 * one that programs bring which use OpenTelemetry.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  cli: ["commander", "log-update", "string-width"],
  otel: ["@opentelemetry/api"],
};

Deno.test("tidy: imports are files of the source, but for what runtimes bring", () => {
  const strange = FILES.flatMap(({ path, imports }) =>
    imports.filter((specifier) => {
      if (specifier.startsWith(".")) return !PATHS.includes(resolveImport(path, specifier));
      if (PACKAGES[areaOf(path)![0]]?.includes(specifier)) return false;
      return !/^(node|cloudflare):/u.test(specifier);
    }).map((specifier) => `${path} imports ${specifier}`)
  );
  assertEquals(strange, []);
});

Deno.test("tidy: the command line uses the entry points of the library", () => {
  const inside = FILES.filter(({ path }) => areaOf(path)![0] === "cli").flatMap((file) =>
    importsOf(file)
      .filter((target) =>
        /^src\/(operate|redis|testing)\//u.test(target) && !target.endsWith("/mod.ts")
      )
      .map((target) => `${file.path} imports ${target}`)
  );
  assertEquals(inside, []);
});

Deno.test("tidy: mod.ts exports neither the seam of ./nodes nor the client of ./redis", () => {
  const { imports } = FILES.find(({ path }) => path === "mod.ts")!;
  assertGreater(imports.length, 0);
  const elsewhere = /^src\/(?:quorum|nodes|redis)\//u;
  assertEquals(
    imports.map((path) => resolveImport("mod.ts", path)).filter((path) => elsewhere.test(path)),
    [],
  );
});

Deno.test("tidy: no modules import each other in a circle, not even for types", () => {
  const graph = new Map(FILES.map((file) => [file.path, importsOf(file)]));
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(" > "));
    if (done.has(path) || trail.includes(path)) return;
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  assertEquals(circles, []);
});

Deno.test("tidy: no chain of imports of values has more than 11 modules, also by import()", () => {
  const chains = new Map<string, readonly string[]>();
  const chainOf = (path: string): readonly string[] => {
    const known = chains.get(path);
    if (known) return known;
    const next = valueImportsOf(path).map(chainOf)
      .reduce((longest, chain) => chain.length > longest.length ? chain : longest, []);
    const chain = [path, ...next];
    chains.set(path, chain);
    return chain;
  };
  const longest = chainOf("mod.ts");
  assertGreater(longest.length, 5);
  assertEquals(longest.slice(CHAIN_MAX), [], longest.join(" > "));
});

type Part = "text" | "uncommented" | "code" | "prose";

/** Patterns in parts of the sources, and the files that may have them. */
const NOWHERE_ELSE: readonly (readonly [rule: string, Part, pattern: RegExp, allowed?: RegExp])[] =
  [
    [
      "Deno is named in its own transport, in the clock and in the name of the process alone",
      "code",
      /\bDeno\b/u,
      /^src\/(transport\/deno\w*|process_name|time\/clock)\.ts$/u,
    ],
    ["no text names Deno", "uncommented", /["'`]Deno["'`]/u, /^src\/transport\/default\.ts$/u],
    [
      "Node is imported in its own transport and by the command line alone",
      "uncommented",
      /["'`]node:/u,
      /^src\/(transport\/node\w*|cli\/[\w/]+)\.ts$/u,
    ],
    [
      "Node's globals are used in its own transport and by the command line alone",
      "code",
      /\b(process|Buffer|require)\b\s*[.([]/u,
      /^src\/(transport\/node\w*|cli\/[\w/]+)\.ts$/u,
    ],
    [
      "cloudflare: is imported in the workers' transport alone",
      "uncommented",
      /["'`]cloudflare:/u,
      /^src\/transport\/workers\.ts$/u,
    ],
    [
      "clocks and timers are used in clock.ts and tick.ts alone",
      "code",
      /\b(set|clear)(Timeout|Interval|Immediate)\b|\bperformance\b|\bDate(\.now|\(\))/u,
      /^src\/time\/(clock|tick)\.ts$/u,
    ],
    [
      "randomness is drawn in random.ts alone",
      "code",
      /\bcrypto\b|\bMath\.random\b/u,
      /^src\/time\/random\.ts$/u,
    ],
    [
      "there are no default exports, enums, namespaces or keywords for privacy",
      "code",
      /\bexport default\b|\benum \w|\bnamespace \w|\bdeclare module\b|^\s*(private|protected|public) /u,
    ],
    ["a limit's unit precedes MAX and MIN", "code", /[A-Z]_(MAX|MIN)_(MS|BYTES|LENGTH)\b/u],
    ["nothing is left to do", "text", /\b(TODO|FIXME|XXX)\b/u],
    // The platform's own module has no types to be had elsewhere.
    [
      "nothing is switched off",
      "text",
      /@ts-(ignore|nocheck|expect-error)|deno-lint-ignore-file/u,
      /^src\/transport\/workers\.ts$/u,
    ],
    [
      "no part of a lock client is loaded on demand but the runtime's transport",
      "code",
      /(?<!typeof )\bimport\(/u,
      /^src\/(transport|testing|cli)\//u,
    ],
    ["nothing is printed but warnings", "code", /\bconsole\b/u, /^src\/(cli\/|console_warnings)/u],
  ];

for (const [rule, part, pattern, allowed] of NOWHERE_ELSE) {
  Deno.test(`tidy: ${rule}`, () => {
    const files = FILES.filter(({ path }) => !allowed?.test(path));
    assertEquals(found(pattern, files, part), []);
  });
}

Deno.test("tidy: no lock's value comes from Math.random", () => {
  const { code } = readSource("src/time/random.ts");
  const value = /function value\([\s\S]*?\n\}/u.exec(code)?.[0] ?? "";
  assert(value.includes("pool["));
  assertEquals(value.includes("Math.random"), false);
});

// Words

/**
 * Words that this project does not use, because a plainer one says the same: publishes, notifies,
 * receives, needs, distinguishes; if, whether; not, missing, empty; again, forever, without
 * success. And names that were given up.
 */
const UNUSED_WORDS = [
  ...[
    "tells?",
    "told",
    "hears?",
    "heard",
    "wants?",
    "wanted",
    "lets? (\\S+ ){0,2}be",
    "whoever",
    "anew",
    "in vain",
  ],
  ...["for ever", "as ever", "for so long", "of none", "(is|are|was|were) none"],
  ...["ballots?", "seats?", "electorate", "leftovers?"],
];

const PAGES = ["README.md", ...listFiles("docs", /\.md$/u)].map(readSource);

Deno.test("tidy: sources, README and manual use none of the words that this project does not use", () => {
  const words = new RegExp(`\\b(${UNUSED_WORDS.join("|")})\\b`, "iu");
  assertEquals(found(words, [...FILES, ...PAGES], "prose"), []);
});

Deno.test("tidy: no example is marked ignore", () => {
  assertEquals(found(/```\w+[ ,]+ignore\b/u, [...FILES, ...PAGES], "text"), []);
});

// Tests

const TESTS = listFiles("tests", /\.ts$/u).map(readSource);

Deno.test("tidy: no file of tests has more than 600 lines", () => {
  assertGreater(TESTS.length, 50);
  assertEquals(tooLong(TESTS), []);
});

Deno.test("tidy: no test is run alone or left out", () => {
  const alone = /\b(test|it|describe)\.(only|ignore|skip)\b|\bonly: true\b/u;
  assertEquals(found(alone, TESTS, "code"), []);
});

Deno.test("tidy: no line of a comment has more than 100 columns, because deno fmt wraps none", () => {
  const long = /^(?=\s*(?:\/\*\*|\*|\/\/)).{101}/u;
  assertEquals(found(long, [...FILES, ...TESTS], "text"), []);
});

Deno.test("tidy: programs whose output tests compare are started by plainCommand()", () => {
  const tests = TESTS.filter(({ path }) => /^tests\/(docs|integration|runtime|site)\//u.test(path));
  assertGreater(tests.length, 50);
  assertEquals(found(/new Deno\.Command\(/u, tests, "code"), []);
});

Deno.test("tidy: tests change nothing of their process, because files that run side by side share it", () => {
  const tests = TESTS.filter(({ path }) => !/^tests\/(bench|programs)\//u.test(path));
  const changes = /\bDeno\.(chdir|umask|env\.(set|delete))\(|\bprocess\.(chdir|umask)\(/u;
  assertEquals(found(changes, tests, "code"), []);
});

Deno.test("tidy: the fallback import map names the same packages as deno.json", () => {
  const imports = (path: string): [string, string][] =>
    Object.entries(JSON.parse(readSource(path).text).imports);
  const npm = (path: string) => imports(path).filter(([, target]) => target.startsWith("npm:"));
  assertEquals(npm("tests/support/std/import_map.json"), npm("deno.json"));
});
