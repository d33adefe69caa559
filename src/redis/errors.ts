/**
 * What can go wrong between this client and one server.
 *
 * @module
 */

/** The stable codes of {@linkcode RedisError}. */
export type RedisErrorCode = "REPLY" | "PROTOCOL" | "CONNECTION";

/** Prefixes of replies that say that the server will not serve this user, or not this command. */
const PERMANENT_PREFIXES: readonly string[] = ["DENIED", "NOAUTH", "NOPERM", "WRONGPASS"];
/** The same in replies whose prefix is the general `ERR`. */
const PERMANENT_TEXT =
  /^ERR (unknown command|invalid password|.*\b(no|any) password\b|.*\bDB index\b|SELECT is not allowed)/iu;

/** Base class of the errors of the Redis client. */
export abstract class RedisError extends Error {
  /** A stable identifier of the kind of error. */
  abstract readonly code: RedisErrorCode;

  /**
   * Whether sending the command again cannot help, because the server refuses the credentials, the database or the
   * command itself. `false` for everything that may pass.
   */
  get permanent(): boolean {
    return false;
  }
}

/** Redis repeats a command it does not know, arguments and all; those may hold secrets and are cut off. */
const ECHOED_ARGUMENTS = /,? with args beginning with:.*$/su;

/** The server answered with an error: `-NOAUTH Authentication required.` and the like. */
export class ReplyError extends RedisError {
  /** The name of the class. */
  override readonly name = "ReplyError";
  /** A stable name for programs to compare. */
  override readonly code = "REPLY";
  /** The first word of the server's text, such as `NOAUTH`, `WRONGTYPE` or `ERR`. */
  readonly prefix: string;

  /**
   * Makes the error.
   *
   * @param text The server's text without the leading `-`.
   */
  constructor(text: string) {
    super(text.replace(ECHOED_ARGUMENTS, ""));
    this.prefix = text.split(" ", 1)[0];
  }

  /** Whether the server refuses the user, the password, the database or the command itself. */
  override get permanent(): boolean {
    return PERMANENT_PREFIXES.includes(this.prefix) || PERMANENT_TEXT.test(this.message);
  }
}

/** Whether the server does not allow or does not know what it was asked: it will not, however often it is asked. */
export function isRefusal({ prefix }: ReplyError): boolean {
  return prefix === "NOPERM" || prefix === "ERR";
}

/** The bytes that came are no RESP2; the connection they came on is closed. */
export class ProtocolError extends RedisError {
  /** The name of the class. */
  override readonly name = "ProtocolError";
  /** A stable name for programs to compare. */
  override readonly code = "PROTOCOL";
}

/** What is known about a command whose connection failed. */
export type CommandOutcome = "not-sent" | "unknown";

/** The server could not be reached, did not accept us, or the connection ended. */
export class ConnectionError extends RedisError {
  /** The name of the class. */
  override readonly name = "ConnectionError";
  /** A stable name for programs to compare. */
  override readonly code = "CONNECTION";
  /** The server's address without credentials. */
  readonly address: string;
  /** Whether the command may have been executed: `"not-sent"`, it was not; `"unknown"`, it may. */
  readonly outcome: CommandOutcome;

  /**
   * Makes the error.
   *
   * @param message What was attempted.
   * @param details The address without credentials, what is known of the command, and what caused it.
   */
  constructor(
    message: string,
    details: { address: string; outcome: CommandOutcome; cause?: unknown },
  ) {
    super(message, { cause: details.cause });
    this.address = details.address;
    this.outcome = details.outcome;
  }

  /** Whether the server refused the login. */
  override get permanent(): boolean {
    return this.cause instanceof ReplyError && this.cause.permanent;
  }
}
