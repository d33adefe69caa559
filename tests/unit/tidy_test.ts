import { assert, assertEquals, assertGreater } from "@std/assert";
import {
  functionLengths,
  listFiles,
  readSource,
  resolveImport,
  type SourceFile,
} from "../support/source_code.ts";

const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;

/** The layers from the bottom up: a module imports from its own and from lower ones. */
const LAYERS: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    "leaf",
    /^src\/(backoff|checks|clock|cooldowns|decision|errors|events|fencing|node|options|random|restart_guard|scripts|timer_wheel|validity)\.ts$/u,
  ],
  ["transport", /^src\/transport\/\w+\.ts$/u],
  ["client", /^src\/redis\/(?!mod\.ts)\w+\.ts$/u],
  ["adapter", /^src\/(lock_commands|redis_(diagnosis|ear|guard|node))\.ts$/u],
  [
    "algorithm",
    /^src\/(acquisition|asking|bell|check|contender|fenced_attempt|findings|health_report|hold|inspection|lines|lock|quorum|redlock|renewal|token_source|undo|waiter)\.ts$/u,
  ],
  ["preset", /^src\/create_redlock\.ts$/u],
  ["entry point", /^(mod|src\/redis\/mod|src\/(testing|cli)\/[\w/]+)\.ts$/u],
];

const PATHS = ["mod.ts", ...listFiles("src", /\.ts$/u)];
const FILES: readonly SourceFile[] = PATHS.map(readSource);

/** The places where `pattern` stands in the code of files that do not match `allowed`. */
function found(pattern: RegExp, allowed: RegExp, part: "text" | "uncommented" | "code" = "code") {
  return FILES.filter(({ path }) => !allowed.test(path)).flatMap((file) => {
    return file[part].split("\n").flatMap((line, index) => {
      return pattern.test(line) ? [`${file.path}:${index + 1}: ${line.trim()}`] : [];
    });
  });
}

/** The paths of the files that have more lines than a file may have. */
function tooLong(files: readonly SourceFile[]): string[] {
  return files.filter(({ text }) => text.trimEnd().split("\n").length > FILE_LINES_MAX)
    .map(({ path }) => path);
}

/** Matches no path. */
const NOWHERE = /^$/u;

function layerOf(path: string): number {
  return LAYERS.findIndex(([, pattern]) => pattern.test(path));
}

Deno.test("tidy: the source is there", () => {
  assertGreater(FILES.length, 30);
  assertGreater(FILES.flatMap(functionLengths).length, 200);
  assertGreater(FILES.flatMap(({ imports }) => imports).length, 100);
});

Deno.test("tidy: no file has more than 400 lines", () => {
  assertEquals(tooLong(FILES), []);
});

Deno.test("tidy: no file of tests has more than 400 lines", () => {
  const tests = listFiles("tests", /\.ts$/u).map(readSource);
  assertGreater(tests.length, 50);
  assertEquals(tooLong(tests), []);
});

Deno.test("tidy: no function has more than 70 lines", () => {
  const long = FILES.flatMap((file) =>
    functionLengths(file)
      .filter(({ length }) => length > FUNCTION_LINES_MAX)
      .map(({ line, length }) => `${file.path}:${line}: ${length} lines`)
  );
  assertEquals(long, []);
});

Deno.test("tidy: every file begins with a module doc", () => {
  const bare = FILES.filter(({ text }) =>
    !/^\/\*\*\n(?: \*[^\n]*\n)+? \* @module\n \*\//u.test(text)
  );
  assertEquals(bare.map(({ path }) => path), []);
});

Deno.test("tidy: every module has its layer", () => {
  assertEquals(PATHS.filter((path) => layerOf(path) === -1), []);
});

Deno.test("tidy: imports point down only", () => {
  const upward = FILES.flatMap(({ path, imports }) =>
    imports.filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => resolveImport(path, specifier))
      .filter((target) => layerOf(target) > layerOf(path))
      .map((target) => `${path} imports ${target}`)
  );
  assertEquals(upward, []);
});

Deno.test("tidy: the algorithm knows neither Redis nor a transport", () => {
  const algorithm = LAYERS.findIndex(([name]) => name === "algorithm");
  const wrong = FILES.filter(({ path }) => layerOf(path) === algorithm).flatMap((file) =>
    file.imports.map(({ specifier }) => resolveImport(file.path, specifier))
      .filter((target) =>
        /^src\/(redis|transport)\/|^src\/redis_(diagnosis|node)\.ts$/u.test(target)
      )
      .map((target) => `${file.path} imports ${target}`)
  );
  assertEquals(wrong, []);
});

Deno.test("tidy: imports are files of the source, but for what runtimes bring", () => {
  const strange = FILES.flatMap(({ path, imports }) =>
    imports.filter(({ specifier }) => {
      if (specifier.startsWith(".")) return !PATHS.includes(resolveImport(path, specifier));
      return !/^(node|cloudflare):/u.test(specifier);
    }).map(({ specifier }) => `${path} imports ${specifier}`)
  );
  assertEquals(strange, []);
});

Deno.test("tidy: no modules import each other in a circle, but for types", () => {
  const graph = new Map(FILES.map(({ path, imports }) => [
    path,
    imports.filter(({ typeOnly, specifier }) => !typeOnly && specifier.startsWith("."))
      .map(({ specifier }) => resolveImport(path, specifier)),
  ]));
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

Deno.test("tidy: Deno is named in its own transport alone", () => {
  assertEquals(found(/\bDeno\b/u, /^src\/transport\/deno\w*\.ts$/u), []);
  assertEquals(
    found(/["'`]Deno["'`]/u, /^src\/transport\/default\.ts$/u, "uncommented"),
    [],
  );
});

Deno.test("tidy: Node is imported in its own transport and by the command line alone", () => {
  const allowed = /^src\/(transport\/node\w*|cli\/[\w/]+)\.ts$/u;
  assertEquals(found(/["'`]node:/u, allowed, "uncommented"), []);
  assertEquals(found(/\b(process|Buffer|require)\b\s*[.([]/u, allowed), []);
});

Deno.test("tidy: cloudflare: is imported in the workers' transport alone", () => {
  const allowed = /^src\/transport\/workers\.ts$/u;
  assertEquals(found(/["'`]cloudflare:/u, allowed, "uncommented"), []);
});

Deno.test("tidy: clocks and timers are touched in clock.ts alone", () => {
  const clocks = /\b(set|clear)(Timeout|Interval|Immediate)\b|\bperformance\b|\bDate\b/u;
  assertEquals(found(clocks, /^src\/clock\.ts$/u), []);
});

Deno.test("tidy: randomness is drawn in random.ts alone", () => {
  assertEquals(found(/\bcrypto\b|\bMath\.random\b/u, /^src\/random\.ts$/u), []);
});

Deno.test("tidy: no lock's value comes from Math.random", () => {
  const { code } = readSource("src/random.ts");
  const value = /function value\(\)[\s\S]*?\n\}/u.exec(code)?.[0] ?? "";
  assert(value.includes("pool["));
  assertEquals(value.includes("Math.random"), false);
});

Deno.test("tidy: there are no default exports, enums, namespaces or keywords for privacy", () => {
  const unwanted =
    /\bexport default\b|\benum \w|\bnamespace \w|\bdeclare module\b|^\s*(private|protected|public) /u;
  assertEquals(found(unwanted, NOWHERE), []);
});

Deno.test("tidy: nothing is left to do, switched off or printed", () => {
  assertEquals(found(/\b(TODO|FIXME|XXX)\b/u, NOWHERE, "text"), []);
  // The platform's own module has no types to be had elsewhere.
  const workers = /^src\/transport\/workers\.ts$/u;
  const off = /@ts-(ignore|nocheck|expect-error)|deno-lint-ignore-file/u;
  assertEquals(found(off, workers, "text"), []);
  assertEquals(found(/\bconsole\./u, /^src\/cli\//u), []);
});

Deno.test("tidy: no example is marked ignore", () => {
  const documents = [...FILES, readSource("README.md")];
  const ignored = documents.flatMap(({ path, text }) => {
    return [...text.matchAll(/```\w+[ ,]+ignore\b/gu)].map(({ index }) => `${path} at ${index}`);
  });
  assertEquals(ignored, []);
});

Deno.test("tidy: no test is run alone or left out", () => {
  const tests = listFiles("tests", /\.ts$/u).filter((path) => !path.endsWith("tidy_test.ts"));
  const wrong = tests.map(readSource).flatMap(({ path, code }) => {
    return [...code.matchAll(/\b(test|it|describe)\.(only|ignore|skip)\b|\bonly: true\b/gu)]
      .map(([match]) => `${path}: ${match}`);
  });
  assertEquals(wrong, []);
});

Deno.test("tidy: the fallback import map names the same packages as deno.json", () => {
  const imports = (path: string): [string, string][] =>
    Object.entries(JSON.parse(readSource(path).text).imports);
  const npm = (path: string) => imports(path).filter(([, target]) => target.startsWith("npm:"));
  assertEquals(npm("tests/support/std/import_map.json"), npm("deno.json"));
});
