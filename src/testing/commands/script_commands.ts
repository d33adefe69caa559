/**
 * The commands about scripts: EVAL, EVALSHA and SCRIPT, for the scripts of this library and of node-redlock.
 *
 * @module
 */
import type { Command, CommandContext } from "./command.ts";
import { parseInteger } from "./integers.ts";
import { PEER_SCRIPT_FUNCTIONS } from "../scripts/peer_script_functions.ts";
import { array, bulk, CommandError, fromByteString, integer, simple } from "../server/replies.ts";
import { scriptError } from "../scripts/script_calls.ts";
import { SCRIPT_FUNCTIONS, type ScriptFunction } from "../scripts/script_functions.ts";
import { sha1 } from "../scripts/sha1.ts";

const FUNCTIONS: ReadonlyMap<string, ScriptFunction> = new Map(
  [...SCRIPT_FUNCTIONS, ...PEER_SCRIPT_FUNCTIONS].map((script) => [script.sha1, script]),
);
/** The same by the sources that were sent, so that no source is hashed twice. */
const SOURCES: Map<string, ScriptFunction> = new Map();

/** The commands by their names in lower case. */
export const SCRIPT_COMMANDS: Readonly<Record<string, Command>> = {
  eval: { arity: -3, run: evalSource },
  evalsha: { arity: -3, run: evalSha },
  script: {
    arity: -2,
    subcommands: {
      load: { arity: 3, run: load },
      exists: { arity: -3, run: exists },
      flush: { arity: -2, run: flush },
    },
  },
};

function evalSource(context: CommandContext, [source, ...args]: readonly string[]): string {
  const { keys, values } = splitArguments(args);
  const script = functionOf(source);
  context.server.scripts.add(script.sha1);
  return runScript(script, context, keys, values);
}

function evalSha(context: CommandContext, [name, ...args]: readonly string[]): string {
  if (name.length !== 40) throw unknownScript();
  const { keys, values } = splitArguments(args);
  const script = FUNCTIONS.get(name.toLowerCase());
  if (!script || !context.server.scripts.has(script.sha1)) throw unknownScript();
  return runScript(script, context, keys, values);
}

function unknownScript(): CommandError {
  return new CommandError("NOSCRIPT No matching script. Please use EVAL.");
}

function runScript(
  script: ScriptFunction,
  context: CommandContext,
  keys: readonly string[],
  values: readonly string[],
): string {
  try {
    return script.run(context, keys, values);
  } catch (error) {
    throw scriptError(error, script.sha1);
  }
}

/** Splits `<count> <key …> <value …>`. */
function splitArguments(args: readonly string[]): { keys: string[]; values: string[] } {
  const keyCount = parseInteger(args[0]);
  if (keyCount > args.length - 1) {
    throw new CommandError("ERR Number of keys can't be greater than number of args");
  }
  if (keyCount < 0n) throw new CommandError("ERR Number of keys can't be negative");
  const end = Number(keyCount) + 1;
  return { keys: args.slice(1, end), values: args.slice(end) };
}

function functionOf(source: string): ScriptFunction {
  const script = SOURCES.get(source) ?? FUNCTIONS.get(sha1(fromByteString(source)));
  if (!script) {
    throw new CommandError(
      "ERR MemoryRedis runs only the scripts of @hasp/redlock and node-redlock, not this one",
    );
  }
  SOURCES.set(source, script);
  return script;
}

function load({ server }: CommandContext, [source]: readonly string[]): string {
  const { sha1 } = functionOf(source);
  server.scripts.add(sha1);
  return bulk(sha1);
}

function exists({ server }: CommandContext, names: readonly string[]): string {
  return array(names.map((name) => integer(server.scripts.has(name.toLowerCase()) ? 1 : 0)));
}

function flush({ server }: CommandContext, args: readonly string[]): string {
  if (args.length > 1 || (args.length === 1 && !/^a?sync$/iu.test(args[0]))) {
    throw new CommandError("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  }
  server.scripts.clear();
  return simple("OK");
}
