/**
 * One Redis command on a connection of its own: what tests assert with, and so written apart from the client
 * under test.
 *
 * @module
 */

/** How long a server may take to answer before {@linkcode query} rejects. */
const ANSWER_WITHIN_MS = 5_000;

/** Where {@linkcode query} connects to, on 127.0.0.1, and whom it logs in as. */
export interface QueryAddress {
  port: number;
  username?: string;
  password?: string;
}

/** A reply: bulk and simple strings are strings, nil is `null`. */
export type QueryValue = string | number | null | QueryValue[];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

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
    return await new ReplyReader(conn).read();
  } finally {
    clearTimeout(timer);
    close();
  }
}

/** Logs in on a new connection, if the address names somebody. */
export async function logIn(conn: Deno.Conn, address: QueryAddress): Promise<void> {
  if (address.password === undefined) return;
  await writeCommand(conn, ["AUTH", address.username ?? "default", address.password]);
  await new ReplyReader(conn).read();
}

async function writeCommand(conn: Deno.Conn, args: readonly (string | number)[]): Promise<void> {
  const bulks = args.map((arg) => `$${encoder.encode(String(arg)).length}\r\n${arg}\r\n`);
  const bytes = encoder.encode(`*${args.length}\r\n${bulks.join("")}`);
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/** Reads replies byte by byte out of whatever chunks come: slow, and simple enough to be trusted. */
class ReplyReader {
  readonly #conn: Deno.Conn;
  readonly #chunk = new Uint8Array(65_536);
  #unread: Uint8Array = new Uint8Array();

  constructor(conn: Deno.Conn) {
    this.#conn = conn;
  }

  async read(): Promise<QueryValue> {
    const line = decoder.decode(await this.#line());
    const rest = line.slice(1);
    switch (line[0]) {
      case "+":
        return rest;
      case "-":
        throw new Error(rest);
      case ":":
        return Number(rest);
      case "$":
        return rest === "-1" ? null : await this.#bulk(Number(rest));
      case "*":
        return rest === "-1" ? null : await this.#array(Number(rest));
      default:
        throw new Error(`Unknown reply: ${line}`);
    }
  }

  async #array(length: number): Promise<QueryValue[]> {
    const values: QueryValue[] = [];
    for (let i = 0; i < length; i++) values.push(await this.read());
    return values;
  }

  async #bulk(length: number): Promise<string> {
    while (this.#unread.length < length + 2) await this.#more();
    return decoder.decode(this.#take(length + 2).subarray(0, length));
  }

  async #line(): Promise<Uint8Array> {
    let end = this.#unread.indexOf(0x0d);
    while (end < 0 || end + 1 >= this.#unread.length) {
      await this.#more();
      end = this.#unread.indexOf(0x0d);
    }
    return this.#take(end + 2).subarray(0, end);
  }

  #take(length: number): Uint8Array {
    const taken = this.#unread.subarray(0, length);
    this.#unread = this.#unread.subarray(length);
    return taken;
  }

  async #more(): Promise<void> {
    const length = await this.#conn.read(this.#chunk);
    if (length === null) throw new Error("Connection closed before the reply was complete");
    const joined = new Uint8Array(this.#unread.length + length);
    joined.set(this.#unread);
    joined.set(this.#chunk.subarray(0, length), this.#unread.length);
    this.#unread = joined;
  }
}
