/**
 * What a *command* of the server in memory is, and what it works on.
 *
 * @module
 */
import type { Clock } from "../../time/clock.ts";
import type { Channels, Listener } from "../server/channels.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { CommandError } from "../server/replies.ts";

/** What all connections of one server share. */
export interface ServerState {
  /** Where time comes from. */
  readonly clock: Clock;
  /** What clients must log in with. */
  readonly password: string | undefined;
  /** The databases, each under its number. */
  readonly databases: readonly Keyspace[];
  /** The SHA-1s of the scripts that were loaded. */
  readonly scripts: Set<string>;
  /** Who listens to what; made when somebody first does. */
  channels?: Channels;
  /** What tells this run of the server from every other one; left out: zeros. */
  readonly runId?: string;
  /** The wall clock's milliseconds at its start; left out: it started just now. */
  readonly startedAtMs?: number;
}

/** What one connection has of its own. */
export interface ConnectionState extends Listener {
  /** The number that `CLIENT ID` tells. */
  readonly id: number;
  /** The number of the database in use. */
  database: number;
  /** Whether commands are let through. */
  authenticated: boolean;
  /** The name that `CLIENT SETNAME` gave; empty for none. */
  name: string;
  /** Whether the server is to close it once the reply is sent. */
  quit?: boolean;
}

/** What a command works on. */
export interface CommandContext {
  /** The server. */
  readonly server: ServerState;
  /** The connection. */
  readonly connection: ConnectionState;
  /** The database in use. */
  readonly keys: Keyspace;
}

/** One command of the server. */
export interface Command {
  /** How many words a request has, the name included; negative: so many or more. */
  readonly arity: number;
  /** Whether it runs before the client has logged in. */
  readonly beforeLogin?: boolean;
  /** Whether it runs while the client listens to channels. */
  readonly whileSubscribed?: boolean;
  /** Runs it on the words behind its name and returns the encoded reply. */
  run?(context: CommandContext, args: readonly string[]): string;
  /** The commands of which it is only the first word. */
  readonly subcommands?: Readonly<Record<string, Command>>;
}

/** The refusal of a request with too few or too many words. */
export function wrongArity(name: string): CommandError {
  return new CommandError(`ERR wrong number of arguments for '${name}' command`);
}
