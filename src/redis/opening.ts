/**
 * How a connection begins: where it leads, and the commands that log in.
 *
 * @module
 */
import type { ConnectTarget, TlsOptions } from "../transport/transport.ts";
import type { RedisAddress } from "./address.ts";

/** Where the stream to a server leads. */
export function connectTarget(
  { kind, hostname, port, path }: RedisAddress,
  tls: TlsOptions,
): ConnectTarget {
  if (kind === "unix") return { kind, path };
  return kind === "tcp" ? { kind, hostname, port } : { kind, hostname, port, tls };
}

/** The commands that log in, select the database and name the connection, in their order. */
export function loginCommands(
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
