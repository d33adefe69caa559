/** The shell commands of the pages, and the test runners that they show. */

import { assert, assertEquals } from "@std/assert";
import { dirname } from "node:path";
import { findRuntime } from "../../scripts/find_runtimes.ts";
import { startConsumer } from "../../scripts/package/consumer.ts";
import { findTools, nodePath, type ToolSet } from "../../scripts/package/tools.ts";
import { plainCommand } from "../support/plain_command.ts";
import { codeMarked, FENCES, fencesMarked, promisedOutput, ROOT } from "./pages.ts";

const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));

/** How long one run of a test runner may take, in milliseconds. */
const RUN_WITHIN_MS = 180_000;

Deno.test("docs: every task that is shown exists, and Deno's version is that of CI", async () => {
  const lines = fencesMarked("tasks")
    .flatMap(({ code }) => code.trim().split("\n"));
  assert(lines.length > 4);
  const ci = await Deno.readTextFile(new URL(".ci/run", ROOT));
  for (const line of lines) {
    const [, version, task] = line.match(/^(?:npx --yes deno@(\S+)|deno) task ([\w:]+)/u)!;
    assert(task in config.tasks, line);
    if (version !== undefined) assert(ci.includes(`version=${version}\n`), line);
  }
});

Deno.test("docs: what is installed is this package", () => {
  const names = [...codeMarked("install").matchAll(/^(?:deno add jsr:|npm install )(\S+)/gmu)];
  assertEquals(names.map(([, name]) => name), [config.name, config.name]);
});

Deno.test("docs: each command that runs an example runs it, in a folder with the npm package alone", async (t) => {
  await using consumer = await startConsumer();
  const commands = codeMarked("install").split("\n").filter((line) => line.includes("lock.mts"))
    .map((line) => line.replace(/ *#.*$/u, ""));
  assertEquals(commands.length, 4);
  const example = FENCES.find(({ language }) => language === "ts")!; // the README's
  await Deno.writeTextFile(`${consumer.folder}/lock.mts`, example.code);
  const programs: Record<string, () => Promise<[path: string, ...args: string[]]>> = {
    "deno": () => Promise.resolve([Deno.execPath()]),
    "bun": async () => [await findRuntime("bun")],
    "node": async () => [await nodePath("node26")],
    "npx tsx": async () => [await nodePath("node20"), `${await findTools("tsx")}/tsx/dist/cli.mjs`],
  };
  for (const command of commands) {
    await t.step(command, async () => {
      const [, name, rest] = command.match(/^(deno|bun|node|npx tsx) (.*)$/u)!;
      const [path, ...args] = await programs[name]();
      const { success, stdout, stderr } = await plainCommand(path, {
        args: [...args, ...rest.split(" ")],
        cwd: consumer.folder,
        signal: AbortSignal.timeout(RUN_WITHIN_MS),
      }).output();
      const decoder = new TextDecoder();
      assert(success, decoder.decode(stderr));
      assertEquals(decoder.decode(stdout).trim().split("\n"), promisedOutput(example.code));
    });
  }
});

Deno.test("docs: the tests for Deno pass", async () => {
  await using folder = await testFolder();
  const imports = {
    "@hasp/redlock": new URL("mod.ts", ROOT).href,
    "@hasp/redlock/testing": new URL("src/testing/mod.ts", ROOT).href,
    "@std/testing/time": new URL("tests/support/std/time.ts", ROOT).href,
    "@sinonjs/fake-timers": config.imports["@sinonjs/fake-timers"],
  };
  await Deno.writeTextFile(`${folder.path}/deno.json`, JSON.stringify({ imports }));
  const tests = await writeTests(folder.path, "deno-test", "_test.ts");
  const args = ["test", "--quiet", "--no-prompt", "--allow-net=127.0.0.1"];
  await expectPasses(tests, Deno.execPath(), args, folder.path);
});

const OPEN_JEST_TEST = `
test("a client is left open", async () => {
  const { createRedlock } = await import("@hasp/redlock");
  const nodes = await (await import("@hasp/redlock/testing")).startNodes(1);
  await createRedlock(nodes.addresses).using("report", () => {});
  await nodes.close();
});
`;

Deno.test("docs: the tests for the runners of Node and Bun, Vitest, Jest, ts-jest and Sinon pass with the npm package", async (t) => {
  await using consumer = await startConsumer();
  const node = await findRuntime("node");
  await t.step("Node's runner", async () => {
    const tests = await writeTests(consumer.folder, "node-test", ".test.ts");
    await expectPasses(tests, node, ["--test", "*.test.ts"], consumer.folder);
  });
  await t.step("Bun's runner", async () => {
    await using folder = await testFolder(undefined, consumer.folder);
    const tests = await writeTests(folder.path, "bun-test", ".test.ts");
    await expectPasses(tests, await findRuntime("bun"), ["test"], folder.path);
  });
  await t.step("Vitest", async () => {
    await using folder = await testFolder("vitest", consumer.folder);
    const tests = await writeTests(folder.path, "vitest", ".test.ts");
    await expectPasses(tests, node, ["../node_modules/vitest/vitest.mjs", "run"], folder.path);
  });
  await t.step("Jest", async () => {
    await using folder = await testFolder("jest", consumer.folder);
    const tests = await writeTests(folder.path, "jest", ".test.js");
    const [, name, value] = codeMarked("runner").match(/^(\w+)=(\S+) npx jest$/mu)!;
    const env = { [name]: value };
    await expectPasses(tests, node, ["../node_modules/jest/bin/jest.js"], folder.path, env);

    // One whose client is left open passes, too, though the client connects again afterwards.
    await Deno.writeTextFile(`${folder.path}/open.js`, OPEN_JEST_TEST);
    const after = "module.exports = () => new Promise((done) => setTimeout(done, 2_000));";
    await Deno.writeTextFile(`${folder.path}/after.cjs`, after);
    const alone = ["-i", "--globalTeardown=./after.cjs", "--testRegex=open.js"];
    const args = ["../node_modules/jest/bin/jest.js", ...alone];
    await expectPasses(1, node, args, folder.path, env);
  });
  await t.step("ts-jest in a CommonJS project", async () => {
    await using folder = await testFolder("tsJest", consumer.folder);
    const tests = await writeTests(folder.path, "ts-jest", ".test.ts");
    await Deno.writeTextFile(`${folder.path}/jest.config.cjs`, codeMarked("ts-jest-config"));
    const compilerOptions = { module: "commonjs", target: "es2021", strict: true, allowJs: true };
    await Deno.writeTextFile(`${folder.path}/tsconfig.json`, JSON.stringify({ compilerOptions }));
    await expectPasses(tests, node, ["../node_modules/jest/bin/jest.js"], folder.path);
  });
  await t.step("Sinon", async () => {
    await using folder = await testFolder("sinon", consumer.folder);
    const tests = await writeTests(folder.path, "sinon", ".test.ts");
    await expectPasses(tests, node, ["--test", "*.test.mjs"], folder.path);
  });
});

/**
 * A folder for one run, below the tools of a set where it is given, with the npm package of
 * `consumer`.
 */
async function testFolder(set?: ToolSet, consumer?: string) {
  const dir = set && dirname(await findTools(set));
  const path = await Deno.makeTempDir({ dir });
  if (consumer !== undefined) {
    await Deno.writeTextFile(`${path}/package.json`, '{"private":true}');
    await Deno.mkdir(`${path}/node_modules`);
    await Deno.symlink(`${consumer}/node_modules/@hasp`, `${path}/node_modules/@hasp`);
  }
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** Writes every fence with a mark into a file of its own; returns how many tests they have. */
async function writeTests(folder: string, mark: string, ending: string): Promise<number> {
  const fences = fencesMarked(mark);
  assert(fences.length > 0, mark);
  let tests = 0;
  for (const [index, { code, language }] of fences.entries()) {
    const name = language === "JavaScript" ? ending.replace(".ts", ".mjs") : ending;
    await Deno.writeTextFile(`${folder}/fence${index}${name}`, code);
    tests += code.match(/^(?:Deno\.)?test\(/gmu)!.length;
  }
  return tests;
}

async function expectPasses(
  tests: number,
  path: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<void> {
  const { success, stdout, stderr } = await plainCommand(path, {
    args,
    cwd,
    env,
    signal: AbortSignal.timeout(RUN_WITHIN_MS),
  }).output();
  const decoder = new TextDecoder();
  const said = decoder.decode(stdout) + decoder.decode(stderr);
  assert(success, said);
  // Vitest and Jest count files as well, on a line before that of the tests.
  const counts = [...said.matchAll(/\b(\d+) pass(?:ed)?\b|\bpass (\d+)\b/gu)];
  assertEquals(Number(counts.at(-1)?.slice(1).find(Boolean)), tests, said);
}
