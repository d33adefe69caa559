/**
 * The commands about scripts: EVAL, EVALSHA and SCRIPT.
 *
 * @module
 */
import { checkSync, type CommandContext, type CommandTable } from "./command.ts";
import { parseNumber } from "./integers.ts";
import { CommandError, OK, type Reply } from "../server/replies.ts";
import { type LuaScript, scriptOf } from "../lua/script.ts";

/** The commands. */
export const SCRIPT_COMMANDS: CommandTable = {
  eval: {
    arity: -3,
    notInScripts: true,
    run: (context, [source, ...words]) => run(context, words, () => loaded(context, source)),
  },
  evalsha: {
    arity: -3,
    notInScripts: true,
    run: (context, [digest, ...words]) => {
      if (digest.length !== 40) throw unknownScript();
      return run(context, words, () => {
        const script = context.server.scripts.get(digest.toLowerCase());
        if (!script) throw unknownScript();
        return script;
      });
    },
  },
  script: { arity: -2 },
  "script|load": {
    arity: 3,
    notInScripts: true,
    run: (context, [source]) => loaded(context, source).sha1,
  },
  "script|exists": { arity: -3, notInScripts: true, run: exists },
  "script|flush": { arity: -2, notInScripts: true, run: flush },
};

/** Runs a script with what follows it: `<count> <key …> <value …>`, which is checked first. */
function run(
  context: CommandContext,
  [count, ...words]: readonly string[],
  find: () => LuaScript,
): Reply {
  const keyCount = parseNumber(count);
  if (keyCount > words.length) {
    throw new CommandError("ERR Number of keys can't be greater than number of args");
  }
  if (keyCount < 0) throw new CommandError("ERR Number of keys can't be negative");
  const script = find();
  const inside: CommandContext = { ...context, inScript: true };
  const call = (name: string, args: string[]) => context.call(inside, name, args);
  return script.run(call, words.slice(0, keyCount), words.slice(keyCount));
}

function unknownScript(): CommandError {
  return new CommandError("NOSCRIPT No matching script. Please use EVAL.");
}

function loaded({ server }: CommandContext, source: string): LuaScript {
  const script = scriptOf(source);
  server.scripts.set(script.sha1, script);
  return script;
}

function exists({ server }: CommandContext, names: readonly string[]): Reply {
  return names.map((name) => server.scripts.has(name.toLowerCase()) ? 1 : 0);
}

function flush({ server }: CommandContext, args: readonly string[]): Reply {
  checkSync(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  server.scripts.clear();
  return OK;
}
