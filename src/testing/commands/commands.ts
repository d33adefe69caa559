/**
 * Finds the *command* of a request, checks what Redis checks before it executes one, and executes
 * it.
 *
 * @module
 */
import { CHANNEL_COMMANDS } from "./channel_commands.ts";
import { type Command, type CommandContext, outOfMemory, wrongArity } from "./command.ts";
import { CONNECTION_COMMANDS } from "./connection_commands.ts";
import { KEY_COMMANDS } from "./key_commands.ts";
import { CommandError, encodeReply, failure, type Reply } from "../server/replies.ts";
import { SCAN_COMMANDS } from "./scan_command.ts";
import { scriptCommands } from "./script_commands.ts";
import { SERVER_COMMANDS } from "./server_commands.ts";
import { SORTED_SET_COMMANDS } from "./sorted_set_commands.ts";

/** Most bytes of a refused request that an error repeats. */
const ECHO_BYTES_MAX = 128;

/** Every command by its name in lower case. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries({
    ...CONNECTION_COMMANDS,
    ...SERVER_COMMANDS,
    ...KEY_COMMANDS,
    ...SCAN_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...scriptCommands(callFromScript),
    ...CHANNEL_COMMANDS,
  }),
);

/** The commands by the names that most scripts call them by. */
const SCRIPT_NAMES: ReadonlyMap<string, Command> = new Map(
  [...COMMANDS].map(([name, command]) => [name.toUpperCase(), command]),
);

/**
 * Executes one request.
 *
 * @param context The state that it works on.
 * @param words The name of the command and its arguments, as byte strings; at least one.
 * @returns The encoded reply, which may be an error.
 */
export function runCommand(context: CommandContext, words: readonly string[]): string {
  try {
    const { command, name, args } = findCommand(words);
    if (!context.connection.authenticated && !command.beforeLogin) {
      throw new CommandError("NOAUTH Authentication required.");
    }
    if (command.grows && context.server.isFull) throw outOfMemory();
    const { subscriptions, protocol } = context.connection;
    if (subscriptions?.size && protocol !== 3 && !command.whileSubscribed) {
      throw new CommandError(
        `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    }
    const reply = context.server.clock.during(() => command.run!(context, args));
    return encodeReply(reply, context.connection.protocol ?? 2);
  } catch (error) {
    if (error instanceof CommandError) return failure(error.message);
    throw error;
  }
}

/** Executes one command of a script. */
function callFromScript(context: CommandContext, name: string, args: string[]): Reply {
  const container = SCRIPT_NAMES.get(name) ?? COMMANDS.get(name.toLowerCase());
  const subcommands = args.length > 0 ? container?.subcommands : undefined;
  const subname = subcommands && args[0].toLowerCase();
  const isKnown = subname === undefined || Object.hasOwn(subcommands!, subname);
  const command = isKnown && subname !== undefined ? subcommands![subname] : container;
  if (!command || !isKnown) {
    throw new CommandError("ERR Unknown Redis command called from script");
  }
  if (!hasArity(command, args.length + 1)) {
    throw new CommandError("ERR Wrong number of args calling Redis command from script");
  }
  if (command.notInScripts) {
    throw new CommandError("ERR This Redis command is not allowed from script");
  }
  if (command.grows && context.server.isFull && !context.hasWritten) throw outOfMemory();
  if (command.grows || command.writes) context.hasWritten = true;
  return command.run!(context, subcommands ? args.slice(1) : args);
}

/** A command, its full name, and its arguments. */
interface FoundCommand {
  readonly command: Command;
  readonly name: string;
  readonly args: readonly string[];
}

function findCommand(words: readonly string[]): FoundCommand {
  const name = words[0].toLowerCase();
  const command = COMMANDS.get(name);
  if (!command) throw unknownCommand(words);
  if (!command.subcommands || words.length === 1) {
    checkArity(command, name, words.length);
    return { command, name, args: words.slice(1) };
  }
  const subname = words[1].toLowerCase();
  if (!Object.hasOwn(command.subcommands, subname)) {
    const shown = echo(words[1], ECHO_BYTES_MAX);
    throw new CommandError(
      `ERR unknown subcommand '${shown}'. Try ${name.toUpperCase()} HELP.`,
    );
  }
  const subcommand = command.subcommands[subname];
  const fullName = `${name}|${subname}`;
  checkArity(subcommand, fullName, words.length);
  return { command: subcommand, name: fullName, args: words.slice(2) };
}

function checkArity(command: Command, name: string, count: number): void {
  if (!hasArity(command, count)) throw wrongArity(name);
}

function hasArity({ arity }: Command, count: number): boolean {
  return arity >= 0 ? count === arity : count >= -arity;
}

function unknownCommand([name, ...args]: readonly string[]): CommandError {
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
