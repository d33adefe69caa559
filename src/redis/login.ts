/**
 * How a connection begins: where it leads, and the commands that log in.
 *
 * @module
 */
import type { ConnectTarget, TlsOptions } from "../transport/transport.ts";
import type { GetCredentials } from "../credentials.ts";
import { credentialsOf, type RedisAddress } from "./address.ts";
import type { CommandQueue, ReplyReceiver } from "./command_queue.ts";
import { encodeApart } from "./encoder.ts";
import { ReplyError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/**
 * Commands that a user may lack the right to: a name is no reason to do without the server, and a
 * refusal answers a PING.
 */
const OPTIONAL_COMMANDS: readonly string[] = ["CLIENT", "PING"];
/** The tag of these. */
const OPTIONAL = 1;

/** Where the stream to a server leads. */
export function connectTarget(
  { kind, hostname, port, path }: RedisAddress,
  tls: TlsOptions,
): ConnectTarget {
  if (kind === "unix") return { kind, path };
  return kind === "tcp" ? { kind, hostname, port } : { kind, hostname, port, tls };
}

/** An address with the credentials of the next login. */
export async function withCredentials(
  address: RedisAddress,
  credentials: GetCredentials,
): Promise<RedisAddress> {
  const { username, password } = await credentials(address.name) ?? {};
  if (typeof password === "string" && ["string", "undefined"].includes(typeof username)) {
    return { ...address, ...credentialsOf(username ?? "", password) };
  }
  throw new TypeError("'credentials' must return { username?, password } with strings");
}

/** The login of one connection. */
export class Login implements ReplyReceiver {
  /** How many replies to commands that log in are due. */
  due = 0;
  readonly #onEnd: (refusal?: ReplyError) => void;

  /**
   * @param onEnd Called when the server has accepted the last command, or with its refusal of one.
   */
  constructor(onEnd: (refusal?: ReplyError) => void) {
    this.#onEnd = onEnd;
  }

  /**
   * Puts the commands that log in, if there are any, in front of all others in a queue.
   *
   * @param address The server.
   * @param clientName The name of the connection.
   * @param again Whether a connection was lost before: then the server must show that it answers.
   * @param queue The queue.
   */
  begin(
    address: RedisAddress,
    clientName: string | undefined,
    again: boolean,
    queue: CommandQueue,
  ): void {
    const commands = loginCommands(address, clientName);
    if (again) commands.push(["PING"]);
    for (const command of commands.reverse()) {
      const tag = OPTIONAL_COMMANDS.includes(command[0]) ? OPTIONAL : 0;
      queue.pushFirst(encodeApart(command), this, undefined, tag);
      this.due++;
    }
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, _context: unknown, tag: number): void {
    this.due--;
    // mutation: refused-login-accepted
    if (reply instanceof ReplyError && !(tag === OPTIONAL && reply.commandRefused)) {
      this.#onEnd(reply);
    } else if (this.due === 0) {
      this.#onEnd();
    }
  }

  /** Part of {@linkcode ReplyReceiver}: the connection is lost. */
  onFailure(): void {}
}

/** The commands that log in, select the database and name the connection, in their order. */
function loginCommands(
  { username, password, database }: RedisAddress,
  clientName: string | undefined,
): string[][] {
  const commands: string[][] = [];
  if (username !== undefined) commands.push(["AUTH", username, password ?? ""]);
  else if (password !== undefined) commands.push(["AUTH", password]);
  if (database !== 0) commands.push(["SELECT", String(database)]);
  if (clientName !== undefined) commands.push(["CLIENT", "SETNAME", clientName]);
  return commands;
}
