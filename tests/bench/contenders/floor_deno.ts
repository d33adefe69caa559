/** The floor in Deno: `read` and `write` operations, a read only while replies are due. */

import { Floor, type FloorSocket, type OnChunk } from "./floor.ts";

const RECEIVE_BYTES = 65_536;

/** {@linkcode Floor} over `Deno.connect`. */
export class DenoFloor extends Floor {
  protected override async connect(
    hostname: string,
    port: number,
    onChunk: OnChunk,
  ): Promise<FloorSocket> {
    const conn = await Deno.connect({ hostname, port });
    conn.setNoDelay(true);
    return new DenoSocket(conn, onChunk);
  }
}

class DenoSocket implements FloorSocket {
  readonly #conn: Deno.TcpConn;
  readonly #onChunk: OnChunk;
  readonly #received = new Uint8Array(RECEIVE_BYTES);
  readonly #unsent: Uint8Array[] = [];
  #writing = false;
  #reading = false;
  #closed = false;

  constructor(conn: Deno.TcpConn, onChunk: OnChunk) {
    this.#conn = conn;
    this.#onChunk = onChunk;
  }

  write(bytes: Uint8Array): void {
    if (this.#closed) return;
    if (this.#writing) this.#unsent.push(bytes);
    else this.#write(bytes);
    if (!this.#reading) this.#read();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#conn.close();
  }

  async #write(first: Uint8Array): Promise<void> {
    this.#writing = true;
    try {
      let bytes: Uint8Array | undefined = first;
      while (bytes !== undefined) {
        const sent = await this.#conn.write(bytes);
        bytes = sent < bytes.length ? bytes.subarray(sent) : this.#unsent.shift();
      }
    } catch {
      this.close();
    }
    this.#writing = false;
  }

  async #read(): Promise<void> {
    this.#reading = true;
    let due = true;
    while (due) {
      const length = await this.#conn.read(this.#received).catch(() => null);
      if (length === null) return this.close();
      due = this.#onChunk(this.#received, length);
    }
    this.#reading = false;
  }
}
