/**
 * One connection through a proxy.
 *
 * @module
 */
import type { StreamHandler, StreamPeer } from "../../transport/node_listener.ts";
import type { Transport } from "../../transport/transport.ts";
import { countTraffic } from "../time/traffic.ts";
import { type DirectionFaults, Pipe } from "./pipe.ts";

/** Bytes of one read from the server. */
const READ_BUFFER_BYTES = 65_536;

/** Opens a stream to the server. */
export type OpenServer = (options: { signal: AbortSignal }) => Promise<Transport>;

/** A client's connection, and the one to the server that belongs to it. */
export class Link implements StreamHandler {
  /** From client to server. */
  readonly requests: Pipe;
  /** From server to client. */
  readonly replies: Pipe;
  /** Resolves when nothing of it is left. */
  readonly over: Promise<unknown>;
  /** Whether the client's connection is open. */
  clientIsOpen = true;
  readonly #client: StreamPeer;
  readonly #controller = new AbortController();
  #server: Transport | undefined;
  #serverIsCut = false;
  #onClientClosed: (() => void) | undefined;

  /**
   * @param client The client's end.
   * @param openServer Opens the server's end.
   * @param faults What the two directions obey.
   */
  constructor(
    client: StreamPeer,
    openServer: OpenServer,
    faults: { readonly requests: DirectionFaults; readonly replies: DirectionFaults },
  ) {
    countTraffic();
    this.#client = client;
    this.requests = new Pipe(faults.requests);
    this.replies = new Pipe(faults.replies);
    this.replies.open({
      write: (bytes) => {
        countTraffic();
        client.send(bytes);
      },
      end: () => {
        client.end();
        this.cutServer();
      },
    });
    const clientClosed = new Promise<void>((resolve) => this.#onClientClosed = resolve);
    this.over = Promise.all([clientClosed, this.#forwardReplies(openServer)]);
  }

  /** Part of {@linkcode StreamHandler}. */
  onData(bytes: Uint8Array): void {
    countTraffic();
    this.requests.push(bytes);
  }

  /** Part of {@linkcode StreamHandler}: what the client sent before is still forwarded. */
  onClose(): void {
    countTraffic();
    this.clientIsOpen = false;
    this.#onClientClosed?.();
    this.requests.push(undefined);
  }

  /** Closes both ends at once. */
  cut(): void {
    this.cutServer();
    this.#client.destroy();
  }

  /** Closes the server's end; what waits in either direction is dropped. */
  cutServer(): void {
    this.#serverIsCut = true;
    this.requests.close();
    this.replies.close();
    this.#controller.abort();
    this.#server?.close();
    this.#server = undefined;
  }

  async #forwardReplies(openServer: OpenServer): Promise<void> {
    try {
      const server = await openServer({ signal: this.#controller.signal });
      if (this.#serverIsCut) return server.close();
      this.#server = server;
      this.requests.open({ write: (bytes) => write(server, bytes), end: () => this.cutServer() });
      const buffer = new Uint8Array(READ_BUFFER_BYTES);
      for (;;) {
        const count = await server.read(buffer);
        if (count === null) break;
        countTraffic();
        this.replies.push(buffer.slice(0, count));
      }
    } catch {
      // The server refused or reset the connection: the client's ends as well, unless that was cut.
    }
    this.replies.push(undefined);
  }
}

async function write(server: Transport, bytes: Uint8Array): Promise<void> {
  countTraffic();
  for (let sent = 0; sent < bytes.length;) sent += await server.write(bytes.subarray(sent));
}
