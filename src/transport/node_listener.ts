/**
 * Listening on the loopback interface over `node:net`, which Deno and Bun offer too: the server's side of the
 * Node transport, for nodes in tests.
 *
 * @module
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** What is behind one connection: bytes in, bytes out. */
export interface StreamHandler {
  /** Takes in bytes, which are not kept, and returns what is to be sent back. */
  push(bytes: Uint8Array): Uint8Array;
  /** Whether the connection is to end once that is sent. */
  readonly ended: boolean;
}

/** A listener that was started. */
export interface Listener {
  /** The TCP port on 127.0.0.1. */
  readonly port: number;
  /** Stops listening and closes every connection; resolves once all of them are gone. */
  close(): Promise<void>;
}

/**
 * Listens on a free port of 127.0.0.1.
 *
 * @param accept Called for each connection; returns what is behind it.
 * @returns The listener.
 */
export async function listen(accept: () => StreamHandler): Promise<Listener> {
  const sockets = new Map<Socket, Promise<void>>();
  const server = createServer({ noDelay: true }, (socket) => {
    const gone = new Promise<void>((resolve) => {
      socket.on("close", () => {
        sockets.delete(socket);
        resolve();
      });
    });
    sockets.set(socket, gone);
    serve(socket, accept());
  });
  await listening(server);
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const gone = [...sockets.values()];
    for (const socket of sockets.keys()) socket.destroy();
    await Promise.all([closed, ...gone]);
  };
  return { port, close };
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function serve(socket: Socket, handler: StreamHandler): void {
  socket.on("error", () => {}); // a peer that went away; "close" follows
  socket.on("data", (bytes: Uint8Array) => {
    const answer = handler.push(bytes);
    if (answer.length > 0) socket.write(answer);
    if (handler.ended) socket.end();
  });
}
