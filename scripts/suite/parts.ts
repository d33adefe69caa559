/**
 * The parts of a whole run, in their order.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../package/tools.ts";

/** One step of the run: a `deno` command. */
export interface Part {
  readonly name: string;
  readonly description: string;
  /** The arguments of `deno`. */
  readonly args: readonly string[];
  /** Variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it resolves `@std` imports. */
  readonly usesStd?: boolean;
  /**
   * Whether it writes a report in JUnit's format to the file of `--junit-path`, so that its tests
   * are counted.
   */
  readonly holdsTests?: boolean;
  /** Whether it starts Redis servers. */
  readonly needsRedis?: boolean;
  /** Whether it installs the npm package. */
  readonly needsPackage?: boolean;
  /** A folder without which the part is left out. */
  readonly onlyWith?: string;
  /**
   * Whether it runs only if it is named: it is slow, and checks nothing that a change of the
   * library can break.
   */
  readonly onlyNamed?: boolean;
}

/**
 * Files of tests that run at once, where they wait for servers and time-outs far more than they
 * compute.
 */
const WAITING_JOBS = String(Math.max(navigator.hardwareConcurrency, 5));

/** Every part. */
export const PARTS: readonly Part[] = [
  { name: "fmt", description: "formatting", args: ["fmt", "--check"] },
  { name: "lint", description: "lint rules", args: ["lint"] },
  {
    name: "check",
    description: "types of all code",
    args: ["check", "mod.ts", "src", "tests", "scripts"],
    usesStd: true,
  },
  {
    name: "doc",
    description: "documentation of the public API",
    args: ["doc", "--lint", ...entryPoints()],
  },
  testPart("examples", "code in doc comments and the manual", [
    "--doc",
    "--allow-net=127.0.0.1",
    "mod.ts",
    "src",
    "README.md",
    "docs",
  ]),
  testPart("unit", "tests without permissions", ["--allow-read=.", "tests/unit"]),
  {
    ...testPart("integration", "tests on real Redis servers", ["-A", "tests/integration"]),
    env: {
      DENO_JOBS: WAITING_JOBS,
      HASP_TEST_ACL: "1", // clients have the rights that the manual gives them, and no others
    },
    needsRedis: true,
    needsPackage: true,
  },
  {
    ...testPart("docs", "README and docs/: examples, tables, links", ["-A", "tests/docs"]),
    env: { DENO_JOBS: WAITING_JOBS },
    needsRedis: true,
    needsPackage: true,
  },
  {
    ...testPart("simulation", "seeded simulations", ["-A", "tests/simulation"]),
    onlyWith: "tests/simulation",
  },
  {
    ...testPart("site", "the site of the manual, built and looked at in a browser", [
      "-A",
      "tests/site",
    ]),
    onlyNamed: true,
  },
  {
    ...testPart("next", "a route of Next's edge runtime, built and run", ["-A", "tests/next"]),
    needsRedis: true,
    needsPackage: true,
    onlyNamed: true,
  },
  {
    name: "runtime",
    description: "one suite on Deno, Node, Bun and workerd, and the examples",
    args: ["run", "-A", "tests/runtime/main.ts"],
    holdsTests: true,
    needsRedis: true,
    needsPackage: true,
  },
  {
    name: "npm",
    description: "the npm package: built, packed, checked",
    args: ["run", "-A", "scripts/check_npm.ts"],
    holdsTests: true,
    needsRedis: true,
    needsPackage: true,
  },
  {
    name: "publish",
    description: "dry run of publishing",
    args: ["publish", "--dry-run", "--allow-dirty"],
  },
];

/** Whether a part belongs to a whole run: what it runs is there, and it need not be named. */
export function isInWholeRun({ onlyWith, onlyNamed = false }: Part): boolean {
  return !onlyNamed && (onlyWith === undefined || existsSync(join(ROOT, onlyWith)));
}

/** Whether a part is a `deno test`, which takes the arguments of one. */
export function isDenoTest({ args }: Part): boolean {
  return args[0] === "test";
}

/** Whether a part runs files of tests: their types are among those that the part `check` checks. */
export function isTestOfFiles(part: Part): boolean {
  return isDenoTest(part) && !part.args.includes("--doc");
}

function testPart(name: string, description: string, args: string[]): Part {
  return {
    name,
    description,
    args: [
      "test",
      "--parallel",
      "--no-prompt",
      "--preload=tests/support/quiet_console.ts",
      ...args,
    ],
    usesStd: true,
    holdsTests: true,
  };
}

function entryPoints(): string[] {
  const config = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  return Object.values<string>(config.exports);
}
