/** Every fence of code in the README and docs/ does what it says. */

import { assert, assertEquals } from "@std/assert";
import { findRuntime } from "../../scripts/find_runtimes.ts";
import { lostText, manyClientsText, unreachableText } from "../../src/console_warnings.ts";
import { bundle } from "../../scripts/package/bundle.ts";
import { type Consumer, startConsumer } from "../../scripts/package/consumer.ts";
import { makeFolder } from "../support/command_line.ts";
import { listFiles } from "../support/source_code.ts";
import { plainCommand } from "../support/plain_command.ts";
import { type Fence, FENCES, MANUAL, promisedOutput, ROOT, titleOf } from "./pages.ts";

const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));

/** What examples may import in Deno, by the names that users write. */
const IMPORTS = {
  "@hasp/redlock": new URL("mod.ts", ROOT).href,
  "@hasp/redlock/nodes": new URL("src/nodes/mod.ts", ROOT).href,
  "@hasp/redlock/operate": new URL("src/operate/mod.ts", ROOT).href,
  "@hasp/redlock/otel": new URL("src/otel/mod.ts", ROOT).href,
  "@hasp/redlock/redis": new URL("src/redis/mod.ts", ROOT).href,
  "@hasp/redlock/testing": new URL("src/testing/mod.ts", ROOT).href,
  "@hasp/redlock/upstash": new URL("src/upstash/mod.ts", ROOT).href,
  "@opentelemetry/api": config.imports["@opentelemetry/api"],
  "ioredis": config.imports.ioredis,
  "redlock": config.imports.redlock5,
};

const EXAMPLE_LINES_MAX = 40;

/** How long one example may run, in milliseconds; it ends only what hangs. */
const RUN_WITHIN_MS = 180_000;

/** The time that the work of an example takes: a sleep, and no timer that does something. */
const WORK = /(?<=\bsetTimeout\((?:\w+, )?)\d[\d_]*/gu;
/** How long an example waits for its lock. */
const WAIT = /\bwaitMs: (\d[\d_]*)/u;
/** Work that is shorter than any wait, and longer than a wait of none, in milliseconds. */
const SHORT_WORK_MS = 20;
/** How much longer than the wait the longer work takes, in milliseconds. */
const LONGER_MS = 400;
/** A wait that is longer is not outlasted, in milliseconds. */
const WAIT_OUTLASTED_MS_MAX = 2_000;

/** How a fence is tested, by its language and its marks; whatever is not in here is not tested. */
const WAYS: Record<string, readonly string[]> = {
  ts: ["", "node", "bun", "workerd", "file"],
  TypeScript: [
    "file",
    "peers",
    "tls",
    "deno-test",
    "node-test",
    "bun-test",
    "vitest",
    "ts-jest",
    "nest",
  ],
  js: ["node", "bun"],
  JavaScript: ["file", "commonjs", "jest", "ts-jest-config", "vitest", "sinon"],
  lua: ["guarded-write", "release"],
  sh: ["install", "tasks", "redis", "runner", "hasp", "cli-install", "certificates", "tls"],
  text: [
    ...["addresses", "acl", "report", "areas", "crontab", "inspect", "list", "watch"],
    ...["stuck", "verbose", "warnings"],
  ],
  conf: ["redis", "hosts", "tls"],
  ini: ["systemd", "unit"],
  yaml: ["compose", "kubernetes"],
};

Deno.test("docs: every fence says how it is tested", () => {
  const unknown = FENCES.filter(({ language, marks }) => {
    const known = WAYS[language] ?? [];
    return !(marks.length > 0 ? marks : [""]).every((mark) => known.includes(mark.split("=")[0]));
  });
  assertEquals(unknown.map(titleOf), []);
});

for (const fence of FENCES.filter(({ language, marks }) => language === "ts" && !fileOf(marks))) {
  for (const [work, code] of atDurations(fence.code)) {
    Deno.test(`docs: ${titleOf(fence)} prints what it says in Deno${work}`, async () => {
      const args = ["run", "--quiet", "--no-prompt", "--allow-net=127.0.0.1", "example.ts"];
      assertEquals(await outputInDeno(code, args), promisedOutput(code));
    });
  }
}

/**
 * An example as it is; or, if work of some length is in it, with work shorter and work longer than
 * its wait.
 */
function atDurations(code: string): [work: string, code: string][] {
  if (code.search(WORK) < 0) return [["", code]];
  const waitMs = Number(WAIT.exec(code)?.[1].replaceAll("_", "") ?? 0);
  const longMs = LONGER_MS + (waitMs > WAIT_OUTLASTED_MS_MAX ? 0 : waitMs);
  return [SHORT_WORK_MS, longMs].map((
    ms,
  ) => [` with ${ms} ms of work`, code.replace(WORK, `${ms}`)]);
}

for (const fence of FENCES.filter(({ marks }) => marks[0] === "peers")) {
  Deno.test(`docs: ${titleOf(fence)} prints what it says beside the other library`, async () => {
    const args = ["run", "--quiet", "--check", "-A", "example.ts"];
    assertEquals(await outputInDeno(fence.code, args), promisedOutput(fence.code));
  });
}

for (const fence of FENCES.filter(({ marks }) => fileOf(marks) !== undefined)) {
  Deno.test(`docs: ${titleOf(fence)} shows the file that the tests run`, async () => {
    const path = fileOf(fence.marks)!;
    assertEquals(fence.code, withoutModuleDoc(await Deno.readTextFile(new URL(path, ROOT))));
  });
}

Deno.test("docs: the health report that is shown is what the example before it prints", async () => {
  const at = FENCES.findIndex(({ marks }) => marks.includes("report"));
  const code = `${
    FENCES[at - 1].code
  }console.log("---");\nconsole.log(formatHealthReport(report));`;
  const args = ["run", "--quiet", "--no-prompt", "--allow-net=127.0.0.1", "example.ts"];
  const printed = await outputInDeno(code, args);
  const shown = FENCES[at].code.trimEnd().split("\n").slice(0, -1); // the last line is an ellipsis
  const report = printed.slice(printed.indexOf("---") + 1);
  assertEquals(shown.map(masked), report.slice(0, shown.length).map(masked));
});

Deno.test("docs: the warnings that are shown are what a client without a listener writes", () => {
  const [fence] = FENCES.filter(({ marks }) => marks.includes("warnings"));
  const node = "redis://10.0.0.1:6379";
  const error = new Error(`Connection to ${node} could not be made: connection refused`);
  const cause = new Error("its validity has ended");
  assertEquals(fence.code.trimEnd().split("\n"), [
    unreachableText(node, error, 0, 1),
    lostText({ type: "lost", resources: ["report"], reason: "expired", cause, heldMs: 31_204 }),
    manyClientsText(),
  ]);
});

/** A line without its numbers and the widths that follow from them. */
function masked(line: string): string {
  return line.replaceAll(/[+-]?\d[\d.]*/gu, "#").replaceAll(/ +/gu, " ");
}

Deno.test("docs: an example that is a file has at most 40 lines, and a whole interface twice as many", () => {
  const files = FENCES.filter(({ marks }) => fileOf(marks) !== undefined);
  const long = files.filter(({ code, page }) => {
    const isInterface = page === "docs/migrating.md"; // that of another library
    return code.trimEnd().split("\n").length > EXAMPLE_LINES_MAX * (isInterface ? 2 : 1);
  });
  assertEquals(long.map(titleOf), []);
});

Deno.test("docs: every example that the tests run is shown, or linked to", () => {
  const linked = MANUAL.flatMap(({ links }) => links.map((link) => link.replace("../", "")));
  const shown = [...FENCES.map(({ marks }) => fileOf(marks)), ...linked];
  const files = listFiles("tests/examples", /\.(?:ts|[cm]?js)$/u);
  assertEquals(files.filter((file) => !shown.includes(file)), []);
});

Deno.test("docs: examples print what they say in Node and Bun, with the npm package", async (t) => {
  await using consumer = await startConsumer();
  const paths = { node: await findRuntime("node"), bun: await findRuntime("bun") };
  for (const fence of FENCES) {
    const runtimes = (["node", "bun"] as const).filter((name) => fence.marks.includes(name));
    if (runtimes.length === 0) continue;
    const script = await scriptIn(consumer, fence);
    const outputs = runtimes.map((name) => outputOf(paths[name], [script], consumer.folder));
    for (const output of outputs) output.catch(() => {}); // each is awaited in its step
    for (const [index, runtime] of runtimes.entries()) {
      await t.step(`${titleOf(fence)} in ${runtime}`, async () => {
        assertEquals(await outputs[index], promisedOutput(fence.code));
      });
    }
  }
  for (const fence of FENCES.filter(({ marks }) => marks.includes("commonjs"))) {
    await t.step(`${titleOf(fence)} in node`, async () => {
      const script = `${consumer.folder}/example.cjs`;
      await Deno.writeTextFile(script, fence.code);
      const node = await findRuntime("node");
      assertEquals(await outputOf(node, [script], consumer.folder), promisedOutput(fence.code));
    });
  }
});

function fileOf(marks: readonly string[]): string | undefined {
  return marks.find((mark) => mark.startsWith("file="))?.slice("file=".length);
}

function withoutModuleDoc(source: string): string {
  return source.replace(/^\/\*\*\n(?: \*[^\n]*\n)*? \* @module\n \*\/\n\n/u, "");
}

/** Runs an example in a folder of its own, where nothing but the imports is. */
async function outputInDeno(code: string, args: string[]): Promise<string[]> {
  await using folder = await makeFolder();
  await Deno.writeTextFile(`${folder.path}/deno.json`, JSON.stringify({ imports: IMPORTS }));
  await Deno.writeTextFile(`${folder.path}/example.ts`, code);
  return await outputOf(Deno.execPath(), args, folder.path);
}

/**
 * Writes an example as what the runtime loads: Node and Bun get JavaScript that Node 20
 * understands.
 */
async function scriptIn({ folder }: Consumer, { code, language }: Fence): Promise<string> {
  const script = `${folder}/example.mjs`;
  if (language === "js") await Deno.writeTextFile(script, code);
  else {
    await Deno.writeTextFile(`${folder}/example.ts`, code);
    await bundle(`${folder}/example.ts`, script, { platform: "node" });
  }
  return script;
}

async function outputOf(path: string, args: string[], cwd: string): Promise<string[]> {
  const { success, stdout, stderr } = await plainCommand(path, {
    args,
    cwd,
    signal: AbortSignal.timeout(RUN_WITHIN_MS),
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).split("\n").slice(0, -1);
}
