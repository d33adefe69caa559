/**
 * Finds the *command* of a request, checks what Redis checks before it executes one, and executes
 * it.
 *
 * @module
 */
import { CHANNEL_COMMANDS } from "./channel_commands.ts";
import {
  type Command,
  type CommandContext,
  type Connection,
  outOfMemory,
  type ServerState,
  wrongArity,
} from "./command.ts";
import { CONNECTION_COMMANDS } from "./connection_commands.ts";
import { KEY_COMMANDS } from "./key_commands.ts";
import { CommandError, encodeReply, failure, type Reply } from "../server/replies.ts";
import { SCAN_COMMANDS } from "./scan_command.ts";
import { SCRIPT_COMMANDS } from "./script_commands.ts";
import { SERVER_COMMANDS } from "./server_commands.ts";
import { SORTED_SET_COMMANDS } from "./sorted_set_commands.ts";

/** Most bytes of a refused request that an error repeats. */
const ECHO_BYTES_MAX = 128;

/** A command, and its full name. */
type NamedCommand = Command & { readonly name: string };

/** Every command by its name in lower case. */
export const COMMANDS: ReadonlyMap<string, NamedCommand> = new Map(
  Object.entries({
    ...CONNECTION_COMMANDS,
    ...SERVER_COMMANDS,
    ...KEY_COMMANDS,
    ...SCAN_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...SCRIPT_COMMANDS,
    ...CHANNEL_COMMANDS,
  }).map(([name, command]) => [name, { ...command, name }]),
);

/**
 * Executes one request.
 *
 * @param server The state of the server.
 * @param connection The connection over which it came.
 * @param words The name of the command and its arguments, as byte strings; at least one.
 * @returns The encoded reply, which may be an error.
 */
export function runCommand(
  server: ServerState,
  connection: Connection,
  words: readonly string[],
): string {
  try {
    const args = words.slice(1);
    const command = commandOf(words[0], args);
    if (!command) throw unknownCommand(words);
    if (!hasArity(command, words.length)) throw wrongArity(command.name);
    if (!connection.authenticated && !command.beforeLogin) {
      throw new CommandError("NOAUTH Authentication required.");
    }
    if (command.grows && server.isFull) throw outOfMemory();
    if (connection.isForMessages && !command.whileSubscribed) {
      throw new CommandError(
        `ERR Can't execute '${command.name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    }
    const context: CommandContext = {
      server,
      connection,
      keys: server.databases[connection.database],
      inScript: false,
      hasWritten: false,
      call: callFromScript,
    };
    const reply = server.clock.during(() => command.run!(context, argumentsOf(command, args)));
    return encodeReply(reply, connection.protocol);
  } catch (error) {
    if (error instanceof CommandError) return failure(error.message);
    throw error;
  }
}

/** Executes one command of a script. */
function callFromScript(context: CommandContext, name: string, args: readonly string[]): Reply {
  const command = commandOf(name, args);
  if (!command) throw new CommandError("ERR Unknown Redis command called from script");
  if (!hasArity(command, args.length + 1)) {
    throw new CommandError("ERR Wrong number of args calling Redis command from script");
  }
  if (command.notInScripts) {
    throw new CommandError("ERR This Redis command is not allowed from script");
  }
  if (command.grows && context.server.isFull && !context.hasWritten) throw outOfMemory();
  if (command.grows || command.writes) context.hasWritten = true;
  return command.run!(context, argumentsOf(command, args));
}

/** The command that a word names, or that word and the first behind it. */
function commandOf(word: string, args: readonly string[]): NamedCommand | undefined {
  if (word.includes("|")) return undefined; // here, that separates two words
  const command = COMMANDS.get(word.toLowerCase());
  if (!command || command.run || args.length === 0) return command;
  return COMMANDS.get(`${command.name}|${args[0].toLowerCase()}`);
}

/** What stands behind the whole name. */
function argumentsOf({ name }: NamedCommand, args: readonly string[]): readonly string[] {
  return name.includes("|") ? args.slice(1) : args;
}

function hasArity({ arity }: Command, count: number): boolean {
  return arity >= 0 ? count === arity : count >= -arity;
}

function unknownCommand([name, ...args]: readonly string[]): CommandError {
  const container = commandOf(name, []);
  if (container) {
    const shown = echo(args[0], ECHO_BYTES_MAX);
    return new CommandError(
      `ERR unknown subcommand '${shown}'. Try ${container.name.toUpperCase()} HELP.`,
    );
  }
  let shown = "";
  for (const arg of args) {
    if (shown.length >= ECHO_BYTES_MAX) break;
    shown += `'${echo(arg, ECHO_BYTES_MAX - shown.length)}' `;
  }
  return new CommandError(
    `ERR unknown command '${echo(name, ECHO_BYTES_MAX)}', with args beginning with: ${shown}`,
  );
}

/** The part of `text` that an error repeats: Redis stops at a NUL. */
function echo(text: string, bytesMax: number): string {
  return text.split("\0", 1)[0].slice(0, bytesMax);
}
