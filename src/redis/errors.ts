/**
 * The errors between this client and one server.
 *
 * @module
 */
import { printable } from "../printable.ts";

/** The stable codes of {@linkcode RedisError}'s subclasses. */
export type RedisErrorCode = "REPLY" | "PROTOCOL" | "CONNECTION";

/**
 * Errors of a server that does not know the command, or does not allow this user to use it. Before
 * Redis 7, and in Dragonfly, those of a command in a script begin with the script and its line.
 */
const COMMAND_REFUSED =
  /^(NOPERM|ERR (unknown (sub)?command|ACL failure|the server (is too old|refuses keys))|(ERR |@user_script)(.*: )?(-NOPERM|The user executing|Unknown Redis command))/iu;
/** Errors of a server that refuses the login or the database. */
const LOGIN_REFUSED =
  /^(DENIED|NOAUTH|WRONGPASS|ERR (invalid password|.*\b(no|any) password\b|.*\bDB index\b|SELECT is not allowed))/iu;

/** Errors of a cluster's node about keys that another node has. */
export const ELSEWHERE = /^(MOVED|CROSSSLOT) |attempted to access (a non local key|keys that do)/iu;
/** In those that pass if it is because the keys of a slot move. */
const SLOT_MAY_MOVE = "a non local key";

/**
 * Names and codes of the errors of runtimes that were started without the permission to connect.
 */
const FORBIDDEN: readonly unknown[] = ["NotCapable", "ERR_ACCESS_DENIED"];

/** Base class of the errors of the Redis client. */
export abstract class RedisError extends Error {
  /** A stable identifier of the kind of error. */
  abstract readonly code: RedisErrorCode;

  /**
   * Whether sending the command again cannot help, because the server refuses the credentials, the
   * database or the command itself, or another node of its cluster has the keys. `false` for
   * everything that may pass.
   */
  get permanent(): boolean {
    return false;
  }

  /** What `JSON.stringify` shows: the message, and everything else but stack and cause. */
  toJSON(): object {
    return { ...this, message: this.message };
  }
}

/**
 * Redis repeats the arguments of an unknown command. They may contain secrets, so they are removed.
 */
const ECHOED_ARGUMENTS = /,? with args beginning with:.*$/su;
/** Prefixes that decide what the client does next. They are kept even if they contain a secret. */
const ACTED_ON =
  /^(?:BUSY|CROSSSLOT|DENIED|ERR|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOSCRIPT|READONLY|WRONGPASS|WRONGTYPE)(?= |$)/u;

/** Thrown if the server replied with an error, such as `NOAUTH Authentication required.` */
export class ReplyError extends RedisError {
  /** The name of the class. */
  override readonly name = "ReplyError";
  /** A stable identifier of the kind of error. */
  override readonly code = "REPLY";
  /** The first word of the server's error, such as `NOAUTH`, `WRONGTYPE` or `ERR`. */
  readonly prefix: string;
  /** Whether the server does not know the command, or does not allow this user to use it. */
  readonly commandRefused: boolean;
  readonly #refused: boolean;

  /**
   * Creates the error. Its message is the server's text, with control characters escaped and cut
   * off if it is long.
   *
   * @param text The server's error without the leading `-`.
   * @param secrets What the message must not show: user name and password, the longer one first.
   */
  constructor(text: string, secrets?: readonly string[]) {
    const [kept = ""] = ACTED_ON.exec(text) ?? [];
    super(kept + printable(text.slice(kept.length).replace(ECHOED_ARGUMENTS, ""), secrets));
    this.prefix = this.message.split(" ", 1)[0];
    // By the text, because a user may have the name of a word that decides.
    this.commandRefused = COMMAND_REFUSED.test(text);
    this.#refused = LOGIN_REFUSED.test(text) ||
      ELSEWHERE.test(text) && !text.includes(SLOT_MAY_MOVE);
  }

  /**
   * Whether the server refuses the user, the password, the database, the command itself, or keys of
   * another node.
   */
  override get permanent(): boolean {
    return this.commandRefused || this.#refused;
  }
}

/**
 * Whether an error shows that the server serves: it refuses this command to the user, or takes no
 * writes while it cannot save its data, and refuses PING with them.
 */
export function isServing({ commandRefused, prefix }: ReplyError): boolean {
  return commandRefused || prefix === "MISCONF";
}

/** Thrown if the server sent something that is not RESP2, or not a reply to the command. */
export class ProtocolError extends RedisError {
  /** The name of the class. */
  override readonly name = "ProtocolError";
  /** A stable identifier of the kind of error. */
  override readonly code = "PROTOCOL";
}

/**
 * What is known about a command whose connection failed: it was not sent, or may have been
 * executed.
 */
export type CommandOutcome = "not-sent" | "unknown";

/**
 * Thrown if the server cannot be reached or refuses the login, or if the connection is lost;
 * `cause` is the reason.
 */
export class ConnectionError extends RedisError {
  /** The name of the class. */
  override readonly name = "ConnectionError";
  /** A stable identifier of the kind of error. */
  override readonly code = "CONNECTION";
  /** The address of the server, without credentials. */
  readonly address: string;
  /**
   * Whether the command may have been executed: `"not-sent"` if not, `"unknown"` if it may have
   * been.
   */
  readonly outcome: CommandOutcome;
  /**
   * How many connections in a row have ended within two seconds after the server had accepted the
   * login; 0 if this one was never accepted, or lived longer.
   */
  readonly endedEarly: number;
  readonly #passes: boolean;

  /**
   * Creates the error.
   *
   * @param message What failed, and why.
   * @param details The address without credentials, what is known about the command, the cause, how
   * many connections in a row ended early (0 by default), and whether the next attempt may succeed
   * although the cause is permanent (no by default).
   */
  constructor(
    message: string,
    details: {
      address: string;
      outcome: CommandOutcome;
      cause?: unknown;
      endedEarly?: number;
      passes?: boolean;
    },
  ) {
    super(message, details.cause === undefined ? {} : details);
    this.address = details.address;
    this.outcome = details.outcome;
    this.endedEarly = details.endedEarly ?? 0;
    this.#passes = details.passes === true;
  }

  /**
   * Whether the server refused the login, which has no other credentials, the runtime may not
   * connect, as Deno without `--allow-net`, or the transport's error has `permanent: true`.
   */
  override get permanent(): boolean {
    const { permanent, name, code } = (this.cause ?? {}) as Record<string, unknown>;
    if (this.#passes) return false;
    return permanent === true || FORBIDDEN.includes(name) || FORBIDDEN.includes(code);
  }
}
