/**
 * Whether the package's declarations compile in other people's projects.
 *
 * @module
 */

import { join } from "node:path";
import type { Consumer } from "./consumer.ts";
import { findTools, succeed } from "./tools.ts";

/** Uses every entry point, and what needs the newest declarations of a standard library. */
const PROGRAM = `
import { createRedlock, LockHeldError, type Lock, Redlock, type RedlockEvent, type Vote } from "@hasp/redlock";
import { commandNode } from "@hasp/redlock/nodes";
import { connect, type Connect, type Reply } from "@hasp/redlock/redis";
import { MemoryRedis, testLockNode } from "@hasp/redlock/testing";
import { metrics, trace } from "@opentelemetry/api";
import { otelListener } from "@hasp/redlock/otel";

export async function main(addresses: readonly (string | URL)[], signal: AbortSignal): Promise<void> {
  const server = new MemoryRedis();
  const own: Connect = server.connect;
  const telemetry = otelListener({ tracerProvider: trace, meterProvider: metrics, group: ([name]) => String(name) });
  const onEvent = (event: RedlockEvent) => telemetry(event);
  await using redlock = createRedlock(addresses, { connect: own, onEvent });
  const result: number = await redlock.using("a", { ttlMs: 1_000, signal }, async (lock: Lock) => {
    lock.signal.throwIfAborted();
    return 1;
  });
  const fenced: Redlock<true> = createRedlock(addresses, { fencing: true });
  await using lock = await redlock.acquire(["a", "b"]);
  const votes: readonly Vote[] = lock.votes;
  await using client = await connect("redis://localhost");
  const reply: Reply = await client.send(["GET", "a", 1, new Uint8Array(1)]);
  const node = commandNode({ name: "a", send: (args, signal) => client.send(args, { signal }) });
  await new Redlock([node]).close();
  testLockNode(() => ({ node }), { test: (_name, run) => void run() });
  const error: unknown = [result, votes, reply, fenced];
  if (error instanceof LockHeldError) throw new TypeError(error.code);
}
`;

/**
 * Passes `undefined` for what is optional, and finds each optional member of what users pass in
 * that does not accept it: it names those in the error. Compiled by every compiler from the first
 * on that reads the declarations of an ES module.
 */
const OPTIONAL = `
import { createRedlock, type CreateRedlockOptions, type ExtendOptions, LockHeldError, type LockHeldErrorDetails,
  type RedlockErrorDetails, type RedlockOptions, type TlsOptions, type Transport } from "@hasp/redlock";
import type { CommandNodeOptions, KeyState, LockNode, NodeDiagnosis } from "@hasp/redlock/nodes";
import type { ForceReleaseOptions, ListOptions } from "@hasp/redlock/operate";
import type { OtelOptions } from "@hasp/redlock/otel";
import { type ClientOptions, connect, type SendOptions } from "@hasp/redlock/redis";
import type { MemoryRedisOptions, MemoryRestartOptions, MemorySessionOptions, NodeToTest, TestLockNodeOptions,
  TimerHandle } from "@hasp/redlock/testing";
import type { UpstashNodeOptions } from "@hasp/redlock/upstash";

type Refusing<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? undefined extends Required<T>[K] ? never : K : never }[keyof T];
type Inputs = [CreateRedlockOptions, RedlockOptions, ExtendOptions, ForceReleaseOptions, ListOptions, LockHeldErrorDetails, RedlockErrorDetails,
  TlsOptions, Transport, CommandNodeOptions, KeyState, LockNode, NodeDiagnosis, OtelOptions, ClientOptions, SendOptions,
  TimerHandle, MemoryRedisOptions, MemoryRestartOptions, MemorySessionOptions, NodeToTest,
  TestLockNodeOptions, UpstashNodeOptions];
type AllRefusing = { [I in keyof Inputs]: Refusing<Inputs[I]> }[number];
export const none: [AllRefusing] extends [never] ? true : { refusing: AllRefusing } = true;

export async function main(): Promise<void> {
  const redlock = createRedlock([], { signal: undefined, fencing: undefined, tls: undefined });
  const lock = await redlock.acquire("a", { signal: undefined, fencing: undefined });
  await redlock.using("a", { signal: undefined, fencing: undefined }, () => {});
  await lock.extend({ signal: undefined });
  const client = await connect("redis://localhost", { tls: { cert: undefined } });
  await client.send(["PING"], { signal: undefined });
  throw new LockHeldError("", { resources: [], holders: undefined });
}
`;

/**
 * The compilers: the first that reads the declarations of an ES module, the oldest for all of them,
 * and the newest.
 */
const [FIRST, OLDEST, NEWEST] = ["typescript_first", "typescript_oldest", "typescript_newest"];

/** How a project finds modules, and what its own are. TypeScript 7 has left out `node10`. */
const RESOLUTIONS = [
  { type: "module", module: "node16", moduleResolution: "node16" },
  { type: "module", module: "esnext", moduleResolution: "bundler" },
  { type: "commonjs", module: "node16", moduleResolution: "node16" },
  { type: "commonjs", module: "commonjs", moduleResolution: "node10", newest: "bundler" },
];

/** Where AsyncDisposable, AbortSignal and URL come from. */
const SURROUNDINGS = {
  "@types/node": { lib: ["es2022"], types: ["node"] },
  "no @types/node": { lib: ["es2022", "esnext.disposable", "dom"], types: [] },
};

/** A program, a compiler, and the options of a project. */
interface Combination {
  readonly program: string;
  readonly compiler: string;
  /** The project's own modules. */
  readonly type: string;
  readonly options: object;
}

function combinations(): Combination[] {
  const optional = [FIRST, NEWEST].map((compiler) => {
    const options = { module: "node16", ...SURROUNDINGS["@types/node"] };
    return { program: OPTIONAL, compiler, type: "module", options };
  });
  const all = [OLDEST, NEWEST].flatMap((compiler) =>
    RESOLUTIONS.flatMap(({ type, newest, ...resolution }) => {
      if (compiler === NEWEST && newest) resolution.moduleResolution = newest;
      return Object.values(SURROUNDINGS).map((surroundings) => {
        return { program: PROGRAM, compiler, type, options: { ...resolution, ...surroundings } };
      });
    })
  );
  return [...optional, ...all];
}

/**
 * Compiles the programs against the installed package, with every compiler, resolution and
 * surroundings: a few at once, because the oldest compiler uses one core.
 *
 * @returns What was compiled.
 * @throws {Error} If one of them finds fault; the message holds its words.
 */
export async function checkTypes(consumer: Consumer): Promise<string> {
  const tools = await findTools("check");
  const all = combinations();
  const pending = all.entries();
  const lanes = Array.from({ length: navigator.hardwareConcurrency }, async () => {
    for (const [index, combination] of pending) {
      await compile(combination, join(consumer.folder, `types${index}`), tools);
    }
  });
  await Promise.allSettled(lanes); // so that no compiler outlives its folder
  await Promise.all(lanes);
  return `${all.length} combinations`;
}

/** Makes a project in `folder`, and compiles it. */
async function compile(
  { program, compiler, type, options }: Combination,
  folder: string,
  tools: string,
): Promise<void> {
  const compilerOptions = {
    ...options,
    target: "es2022",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    typeRoots: [join(tools, "@types")],
  };
  await Deno.mkdir(folder);
  await Deno.writeTextFile(join(folder, "program.ts"), program);
  await Deno.writeTextFile(join(folder, "package.json"), JSON.stringify({ type }));
  const tsconfig = { compilerOptions, files: ["program.ts"] };
  await Deno.writeTextFile(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  await succeed(join(tools, compiler, "bin", "tsc"), ["-p", folder]);
}
