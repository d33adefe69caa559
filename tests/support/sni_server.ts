/**
 * A TLS server that answers every chunk with the server name that its client asked for (SNI), as a
 * bulk string.
 */
import { createServer } from "node:tls";
import type { AddressInfo, Socket } from "node:net";
import type { ServerTls } from "./servers.ts";

/** A running one. Made by {@linkcode startSniServer}. */
export interface SniServer extends AsyncDisposable {
  /** The port on 127.0.0.1. */
  readonly port: number;
}

/** Starts one; what it answers is empty for a client that asks for no name. */
export async function startSniServer({ certFile, keyFile }: ServerTls): Promise<SniServer> {
  const [cert, key] = await Promise.all([certFile, keyFile].map((file) => Deno.readTextFile(file)));
  const sockets = new Set<Socket>();
  const server = createServer({ cert, key }, (socket) => {
    const name = (socket as { servername?: string | false }).servername || "";
    socket.on("data", () => void socket.write(`$${name.length}\r\n${name}\r\n`));
    socket.on("error", () => {});
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
