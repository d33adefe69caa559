/**
 * The commands about scripts: EVAL, EVALSHA and SCRIPT, for the scripts of this library alone.
 *
 * @module
 */
import type { Command, CommandContext } from "./command.ts";
import { parseInteger } from "./integers.ts";
import { array, bulk, CommandError, integer, simple } from "./replies.ts";
import { SCRIPT_FUNCTIONS, type ScriptFunction } from "./script_functions.ts";

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
  return integer(script.run(context.keys, keys, values));
}

function evalSha(context: CommandContext, [name, ...args]: readonly string[]): string {
  const unknown = new CommandError("NOSCRIPT No matching script. Please use EVAL.");
  if (name.length !== 40) throw unknown;
  const { keys, values } = splitArguments(args);
  const sha1 = name.toLowerCase();
  const script = SCRIPT_FUNCTIONS.find((known) => known.sha1 === sha1);
  if (!script || !context.server.scripts.has(sha1)) throw unknown;
  return integer(script.run(context.keys, keys, values));
}

/** Parts `<count> <key …> <value …>`. */
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
  const script = SCRIPT_FUNCTIONS.find((known) => known.source === source);
  if (script) return script;
  throw new CommandError("ERR MemoryRedis runs only the scripts of @hasp/redlock, not this one");
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
