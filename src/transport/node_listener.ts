/**
 * Listens on the loopback interface, and connects to servers, over `node:net`, which Deno and Bun
 * have too: for nodes and proxies in tests.
 *
 * @module
 */
import {
  type AddressInfo,
  createConnection,
  createServer,
  type Server,
  type Socket,
} from "node:net";

/** The other end of one connection. */
export interface StreamPeer {
  /** Sends bytes; after the end they are dropped. */
  send(bytes: Uint8Array): void;
  /** Ends the connection once everything is sent. */
  end(): void;
  /** Closes the connection at once. */
  destroy(): void;
}

/** One side of a connection: what it does with what the other one sends. */
export interface StreamHandler {
  /** Called with bytes, which may be kept. */
  onData(bytes: Uint8Array): void;
  /** Called once when the connection is closed, by either side, or could not be opened. */
  onClose(): void;
}

/** A running listener. */
export interface Listener {
  /** The TCP port on 127.0.0.1. */
  readonly port: number;
  /** Stops listening and resets every connection; resolves once all of them are closed. */
  close(): Promise<void>;
}

/**
 * Listens on a port of 127.0.0.1.
 *
 * @param port The port; 0 for any free port.
 * @param accept Called for each connection; returns its handler.
 * @returns The listener.
 * @throws {Error} If the port is in use, with `code` `EADDRINUSE`.
 */
export async function listen(
  port: number,
  accept: (peer: StreamPeer) => StreamHandler,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    handle(socket, accept(peerOf(socket)));
  });
  await listening(server, port);
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    const gone = [...sockets].map((each) => new Promise((resolve) => each.on("close", resolve)));
    // Deno 2.5 and 2.6 cannot reset a socket. Node does not close one that is reset while its end
    // is being sent.
    for (const socket of sockets) {
      if (socket.writableEnded || !socket.resetAndDestroy) socket.destroy();
      else socket.resetAndDestroy();
    }
    await Promise.all([closed, ...gone]);
  };
  return { port: (server.address() as AddressInfo).port, close };
}

/** Where {@linkcode dial} connects to: a host and its port, or the path of a Unix domain socket. */
export type DialTarget = { readonly hostname: string; readonly port: number } | {
  readonly path: string;
};

/**
 * Connects to a server.
 *
 * @param target The server.
 * @param handler What happens with what it sends.
 * @returns The connection; bytes that are sent before it is open wait.
 */
export function dial(target: DialTarget, handler: StreamHandler): StreamPeer {
  const place = "path" in target ? target : { host: target.hostname, port: target.port };
  const socket = createConnection({ ...place, noDelay: true });
  handle(socket, handler);
  return peerOf(socket);
}

function peerOf(socket: Socket): StreamPeer {
  return {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
}

function handle(socket: Socket, handler: StreamHandler): void {
  socket.on("close", () => handler.onClose());
  socket.on("error", () => {}); // a peer that went away; "close" follows
  socket.on("data", (bytes: Uint8Array) => handler.onData(bytes));
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
}
