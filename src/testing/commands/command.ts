/**
 * The type of a *command* of the server in memory, and of the state that it works on.
 *
 * @module
 */
import type { CommandClock } from "../server/command_clock.ts";
import type { Keyspace } from "../server/keyspace.ts";
import type { LuaScript } from "../lua/script.ts";
import { CommandError, type Protocol, type Reply } from "../server/replies.ts";

/** The state that all connections of one server share. */
export interface ServerState {
  /** The clock. */
  readonly clock: CommandClock;
  /** The password of the default user, if a login is required. */
  readonly password: string | undefined;
  /** The databases by their numbers. */
  readonly databases: readonly Keyspace[];
  /** The scripts that were loaded, by their SHA-1s. */
  readonly scripts: Map<string, LuaScript>;
  /** The connections that are open, the oldest first. */
  readonly connections: Set<Connection>;
  /** Whether its memory is full. */
  isFull: boolean;
  /** The id of this run of the server. */
  runId: string;
  /** The wall clock at its start, in milliseconds. */
  startedAtMs: number;
}

/** The state of one connection. */
export class Connection {
  /** The reply to `CLIENT ID`. */
  readonly id: number;
  /** Sends a message of a channel. */
  readonly deliver: (message: Reply) => void;
  /** Closes it, behind the replies. */
  readonly close: () => void;
  /** Its channels, the oldest first. */
  readonly subscriptions: Set<string> = new Set();
  /** The number of the database in use. */
  database = 0;
  /** The version of the protocol that the client has chosen. */
  protocol: Protocol = 2;
  /** Whether the client has logged in, or need not. */
  authenticated: boolean;
  /** The name that `CLIENT SETNAME` set. */
  name = "";

  constructor(
    server: ServerState,
    id: number,
    deliver: (message: Reply) => void,
    close: () => void,
  ) {
    this.id = id;
    this.deliver = deliver;
    this.close = close;
    this.authenticated = server.password === undefined;
  }

  /** Whether it is for messages, so that only a few commands are accepted. */
  get isForMessages(): boolean {
    return this.subscriptions.size > 0 && this.protocol === 2;
  }
}

/** The state that a command works on. */
export interface CommandContext {
  /** The server. */
  readonly server: ServerState;
  /** The connection. */
  readonly connection: Connection;
  /** The database in use; a script may select another one, for itself. */
  keys: Keyspace;
  /** Whether a script calls the command. */
  readonly inScript: boolean;
  /**
   * Whether the script has changed something, so that it is not stopped half-way if the memory is
   * full.
   */
  hasWritten: boolean;
  /** Executes a command of a script in the script's own context. */
  readonly call: (context: CommandContext, name: string, args: readonly string[]) => Reply;
}

/** One command of the server. */
export interface Command {
  /** The number of words of a request, including the name; negative if it is a minimum. */
  readonly arity: number;
  /** Whether it is allowed before the login. */
  readonly beforeLogin?: boolean;
  /** Whether it is allowed while the client is subscribed to channels. */
  readonly whileSubscribed?: boolean;
  /** Whether it changes data. */
  readonly writes?: boolean;
  /** Whether it changes data, and is refused if the memory is full. */
  readonly grows?: boolean;
  /** Whether scripts may not call it. */
  readonly notInScripts?: boolean;
  /** Executes it with the words behind its name; missing if a second word is part of the name. */
  run?(context: CommandContext, args: readonly string[]): Reply;
}

/** Commands by their names in lower case; a name of two words has `|` between them. */
export type CommandTable = Readonly<Record<string, Command>>;

/** The error of a command that needs memory, if it is full. */
export function outOfMemory(): CommandError {
  return new CommandError("OOM command not allowed when used memory > 'maxmemory'.");
}

/** Refuses what stands behind a command that flushes, unless it is nothing, SYNC or ASYNC. */
export function checkSync(args: readonly string[], refusal: string): void {
  if (args.length > 1 || !/^a?sync$/iu.test(args[0] ?? "sync")) throw new CommandError(refusal);
}

/** The error of a request with too few or too many words. */
export function wrongArity(name: string): CommandError {
  return new CommandError(`ERR wrong number of arguments for '${name}' command`);
}
