/**
 * One connection through a proxy.
 *
 * @module
 */
import type { StreamHandler, StreamPeer } from "../../transport/node_listener.ts";
import { type Faults, Pipe, type Sink } from "../pipe.ts";

/** A client's connection, and the one to the server that belongs to it. */
export class Link implements StreamHandler {
  /** From client to server. */
  readonly requests: Pipe;
  /** From server to client. */
  readonly replies: Pipe;
  /** Resolves when nothing of it is left. */
  readonly over: Promise<void>;
  /** Whether the client's connection is open. */
  clientIsOpen = true;
  readonly #client: StreamPeer;
  readonly #server: StreamPeer;
  readonly #toClient: Sink;
  readonly #toServer: Sink;
  /** How many of the two connections are open. */
  #open = 2;
  #onOver: (() => void) | undefined;

  /**
   * @param client The client's end.
   * @param dialServer Opens the server's end.
   * @param faults What the two directions obey.
   */
  constructor(
    client: StreamPeer,
    dialServer: (handler: StreamHandler) => StreamPeer,
    faults: { readonly requests: Faults; readonly replies: Faults },
  ) {
    this.over = new Promise((resolve) => this.#onOver = resolve);
    this.requests = new Pipe(faults.requests);
    this.replies = new Pipe(faults.replies);
    const server = dialServer({
      onData: (bytes) => this.replies.push(bytes, this.#toClient),
      onClose: () => this.#closed(this.replies, this.#toClient),
    });
    this.#client = client;
    this.#server = server;
    this.#toClient = {
      send: client.send,
      end: () => {
        client.end();
        this.cutServer();
      },
    };
    this.#toServer = {
      send: server.send,
      end: () => {
        this.replies.close();
        server.end();
      },
    };
  }

  /** Part of {@linkcode StreamHandler}. */
  onData(bytes: Uint8Array): void {
    this.requests.push(bytes, this.#toServer);
  }

  /** Part of {@linkcode StreamHandler}: what the client sent before is still forwarded. */
  onClose(): void {
    this.clientIsOpen = false;
    this.#closed(this.requests, this.#toServer);
  }

  /** Closes both ends at once. */
  cut(): void {
    this.cutServer();
    this.#client.destroy();
  }

  /** Closes the server's end; what waits in either direction is dropped. */
  cutServer(): void {
    this.requests.close();
    this.replies.close();
    this.#server.destroy();
  }

  /** One end is closed: so is the other, behind what is on the way to it. */
  #closed(direction: Pipe, sink: Sink): void {
    direction.push(undefined, sink);
    if (--this.#open === 0) this.#onOver!();
  }
}
