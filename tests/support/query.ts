/**
 * One Redis command on a connection of its own: what tests assert with, and so written apart from
 * the client under test.
 */

import { Buffer } from "node:buffer";
import { wire } from "./fake_transport.ts";

/** How long a server may take to answer before {@linkcode query} rejects. */
const ANSWER_WITHIN_MS = 20_000;

/** Where {@linkcode query} connects to, on 127.0.0.1, and whom it logs in as. */
export interface QueryAddress {
  port: number;
  username?: string;
  password?: string;
}

/** A reply: bulk and simple strings are strings, nil is `null`. */
export type QueryValue = string | number | null | QueryValue[];

/**
 * Sends one command and resolves to its reply.
 *
 * @throws {Error} If the reply is an error; its message is the reply's text.
 */
export async function query(
  address: QueryAddress,
  args: readonly (string | number)[],
): Promise<QueryValue> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: address.port });
  let closed = false;
  const close = () => {
    if (!closed) conn.close();
    closed = true;
  };
  const timer = setTimeout(close, ANSWER_WITHIN_MS);
  try {
    await logIn(conn, address);
    await writeCommand(conn, args);
    return await readReply(conn);
  } finally {
    clearTimeout(timer);
    close();
  }
}

/** Logs in on a new connection, if the address names somebody. */
export async function logIn(conn: Deno.Conn, address: QueryAddress): Promise<void> {
  if (address.password === undefined) return;
  await writeCommand(conn, ["AUTH", address.username ?? "default", address.password]);
  await readReply(conn);
}

async function writeCommand(conn: Deno.Conn, args: readonly (string | number)[]): Promise<void> {
  const bytes = new TextEncoder().encode(wire(...args.map(String)));
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/**
 * Reads one reply, from its start whenever more of it has come: slow, and simple enough to be
 * trusted.
 */
async function readReply(conn: Deno.Conn): Promise<QueryValue> {
  const chunk = new Uint8Array(65_536);
  let bytes = Buffer.of();
  for (;;) {
    const length = await conn.read(chunk);
    if (length === null) throw new Error("Connection closed before the reply was complete");
    bytes = Buffer.concat([bytes, chunk.subarray(0, length)]);
    const [reply] = replyAt(bytes, 0) ?? [];
    if (reply !== undefined) return reply;
  }
}

/** The reply that begins at `start`, and where it ends; `undefined` if not all of it has come. */
function replyAt(bytes: Buffer, start: number): [reply: QueryValue, end: number] | undefined {
  const lineEnd = bytes.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const [type, rest] = [
    bytes.toString("utf8", start, start + 1),
    bytes.toString("utf8", start + 1, lineEnd),
  ];
  const next = lineEnd + 2;
  switch (type) {
    case "+":
      return [rest, next];
    case "-":
      throw new Error(rest);
    case ":":
      return [Number(rest), next];
    case "$":
      return rest === "-1" ? [null, next] : bulkAt(bytes, next, Number(rest));
    case "*":
      return rest === "-1" ? [null, next] : arrayAt(bytes, next, Number(rest));
    default:
      throw new Error(`Unknown reply: ${type}${rest}`);
  }
}

function bulkAt(bytes: Buffer, start: number, length: number): [string, number] | undefined {
  const end = start + length;
  return bytes.length < end + 2 ? undefined : [bytes.toString("utf8", start, end), end + 2];
}

function arrayAt(bytes: Buffer, start: number, length: number): [QueryValue[], number] | undefined {
  const values: QueryValue[] = [];
  let end = start;
  while (values.length < length) {
    const element = replyAt(bytes, end);
    if (element === undefined) return undefined;
    values.push(element[0]);
    end = element[1];
  }
  return [values, end];
}
