/**
 * The commands about scripts: EVAL, EVALSHA and SCRIPT.
 *
 * @module
 */
import { checkSync, type Command, type CommandContext } from "./command.ts";
import { parseNumber } from "./integers.ts";
import { CommandError, OK, type Reply } from "../server/replies.ts";
import { type LuaScript, scriptOf } from "../lua/script.ts";
import { UnsupportedError } from "../lua/values.ts";

/** Executes a command of a script. */
export type ScriptCall = (context: CommandContext, name: string, args: string[]) => Reply;

/**
 * The commands by their names in lower case.
 *
 * @param call Executes the commands of scripts.
 */
export function scriptCommands(call: ScriptCall): Readonly<Record<string, Command>> {
  const run = (
    context: CommandContext,
    script: LuaScript,
    { keys, args }: ScriptArguments,
  ): Reply => {
    const { server, connection, keys: database } = context;
    const inside: CommandContext = { server, connection, keys: database, inScript: true };
    return supported(() => script.run((name, words) => call(inside, name, words), keys, args));
  };
  return {
    eval: {
      arity: -3,
      notInScripts: true,
      run: (context, [source, ...rest]) => {
        const given = scriptArguments(rest);
        return run(context, loaded(context, source), given);
      },
    },
    evalsha: {
      arity: -3,
      notInScripts: true,
      run: (context, [digest, ...rest]) => {
        if (digest.length !== 40) throw unknownScript();
        const given = scriptArguments(rest);
        const script = context.server.scripts.get(digest.toLowerCase());
        if (!script) throw unknownScript();
        return run(context, script, given);
      },
    },
    script: {
      arity: -2,
      subcommands: {
        load: {
          arity: 3,
          notInScripts: true,
          run: (context, [source]) => loaded(context, source).sha1,
        },
        exists: { arity: -3, notInScripts: true, run: exists },
        flush: { arity: -2, notInScripts: true, run: flush },
      },
    },
  };
}

/** What a script is called with. */
interface ScriptArguments {
  readonly keys: string[];
  readonly args: string[];
}

function unknownScript(): CommandError {
  return new CommandError("NOSCRIPT No matching script. Please use EVAL.");
}

function loaded({ server }: CommandContext, source: string): LuaScript {
  const script = supported(() => scriptOf(source));
  server.scripts.set(script.sha1, script);
  return script;
}

/**
 * Has the client know what a script uses that is missing here, or that the runtime has no room for:
 * an expression that is too deep for its stack, or a pattern that is too large for it.
 */
function supported<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof UnsupportedError) throw new CommandError(`ERR ${error.message}`);
    if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error;
    throw new CommandError(`ERR MemoryRedis cannot run this script: ${error.message}`);
  }
}

/** Splits `<count> <key …> <value …>`. */
function scriptArguments(words: readonly string[]): ScriptArguments {
  const keyCount = parseNumber(words[0]);
  if (keyCount > words.length - 1) {
    throw new CommandError("ERR Number of keys can't be greater than number of args");
  }
  if (keyCount < 0) throw new CommandError("ERR Number of keys can't be negative");
  const end = keyCount + 1;
  return { keys: words.slice(1, end), args: words.slice(end) };
}

function exists({ server }: CommandContext, names: readonly string[]): Reply {
  return names.map((name) => server.scripts.has(name.toLowerCase()) ? 1 : 0);
}

function flush({ server }: CommandContext, args: readonly string[]): Reply {
  checkSync(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  server.scripts.clear();
  return OK;
}
