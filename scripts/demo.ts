/**
 * The demo: several processes write one shared counter under one lock while its five nodes are killed, hung
 * and restarted; then the same without the lock. Ends with status 0 only if the lock kept every increment and
 * its absence did not.
 *
 * @module
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { Crew } from "./demo/crew.ts";
import { type DemoNodes, type NodeChoice, startNodes } from "./demo/nodes.ts";
import { type Outcome, run } from "./demo/run.ts";
import { paint } from "./demo/screen.ts";

const HELP = `Usage: deno task demo [options]

  --memory   nodes in memory, even where there is a redis-server
  --redis    real redis-server processes, even if one must be fetched first
  --help     show this text`;

const NODES = 5;
const WORKERS = ["worker A", "worker B", "worker C", "worker D"];
const INCREMENTS = 10;
const RESOURCE = "demo:counter";
const TTL_MS = 2_000;
/** Far longer than it takes: a machine that is this slow has other problems. */
const TIME_LIMIT_MS = 60_000;

/** A shared counter in a file, in a folder of its own. */
class Counter implements AsyncDisposable {
  readonly #folder: string;
  readonly file: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.file = join(folder, "counter");
  }

  static async create(): Promise<Counter> {
    return new Counter(await Deno.makeTempDir({ prefix: "redlock-demo-" }));
  }

  async reset(): Promise<void> {
    await Deno.writeTextFile(this.file, "0");
  }

  async read(): Promise<number> {
    return Number(await Deno.readTextFile(this.file));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

async function demo(choice: NodeChoice, signal: AbortSignal): Promise<boolean> {
  await using started = await startNodes(choice, NODES);
  await using counter = await Counter.create();
  const urls = started.nodes.map(({ url }) => url);
  const setup = { urls, file: counter.file, resource: RESOURCE, ttlMs: TTL_MS };
  signal.throwIfAborted();
  await using crew = await Crew.start(WORKERS, setup);
  introduce(started);

  const plan = { increments: INCREMENTS, ttlMs: TTL_MS };
  await counter.reset();
  const title = "With the lock, while nodes fail";
  const withLock = await run(crew, { ...plan, title, locked: true, nodes: started.nodes }, signal);
  const countWith = await counter.read();

  await counter.reset();
  const { scale } = withLock;
  const without = { ...plan, title: "Without the lock", locked: false, nodes: [], scale };
  const withoutLock = await run(crew, without, signal);
  const countWithout = await counter.read();

  console.log(`\n  ${paint("bold", "The proof")}`);
  const kept = tell("with the lock", withLock, countWith, true);
  const lost = tell("without the lock", withoutLock, countWithout, false);
  console.log(
    kept && lost
      ? "\n  As expected: with the lock no increment was lost, and without it some were."
      : "\n  NOT as expected.",
  );
  return kept && lost;
}

function introduce({ description, excuse }: DemoNodes): void {
  console.log(`
  ${paint("bold", "Hasp: five nodes, one lock")}

  nodes     ${description}, quorum 3${excuse === undefined ? "" : `\n            ${excuse}`}
  workers   ${WORKERS.length} processes; each reads a counter, pauses and writes it + 1, ${INCREMENTS} times
  legend    ${paint("cyan", "█")} inside, between reading and writing  ${
    paint("dim", "·")
  } waiting  ${paint("green", "━")} node answers`);
}

/** Prints what became of the counter, and says whether it is as it must be. */
function tell(name: string, outcome: Outcome, count: number, complete: boolean): boolean {
  const { increments, insideAtOnce } = outcome;
  const asExpected = complete ? count === increments : count < increments;
  const lost = count === increments ? "none lost" : `${increments - count} lost`;
  const cells = [
    name.padEnd(17),
    `${increments} increments`,
    `counter ${String(count).padStart(2)}`,
    lost.padEnd(9),
    `${insideAtOnce} inside at once`,
  ];
  const mark = asExpected ? paint("green", "✓") : paint("red", "✗");
  console.log(`  ${cells.join("  ")}  ${mark}`);
  return asExpected;
}

function parseChoice(args: string[]): NodeChoice | undefined {
  const { values } = parseArgs({
    args,
    options: {
      memory: { type: "boolean", default: false },
      redis: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return undefined;
  }
  return values.memory ? "memory" : values.redis ? "redis" : "any";
}

/** Runs the demo until it is over or a signal ends it; whatever it started is gone when this resolves. */
async function main(): Promise<number> {
  const choice = parseChoice(Deno.args);
  if (choice === undefined) return 0;
  const stop = new AbortController();
  const names: Deno.Signal[] = Deno.build.os === "windows"
    ? ["SIGINT"]
    : ["SIGINT", "SIGTERM", "SIGHUP"];
  const interrupt = () => stop.abort(new Error("Interrupted"));
  for (const name of names) Deno.addSignalListener(name, interrupt);
  const limit = setTimeout(() => stop.abort(new Error("The demo takes too long")), TIME_LIMIT_MS);
  try {
    return await demo(choice, stop.signal) ? 0 : 1;
  } catch (error) {
    console.error(`\n  ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    clearTimeout(limit);
    for (const name of names) Deno.removeSignalListener(name, interrupt);
  }
}

if (import.meta.main) Deno.exitCode = await main();
