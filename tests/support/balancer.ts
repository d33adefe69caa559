/**
 * A load balancer on loopback: it gives each new connection to the next of some servers, in turns.
 *
 * @module
 */

import { listenOnRandomPort } from "./servers.ts";

/** A running balancer. Made by {@linkcode startBalancer}. */
export interface Balancer extends AsyncDisposable {
  /** Address for clients, without credentials. */
  readonly url: string;
}

/** Starts a balancer in front of servers on 127.0.0.1. */
export function startBalancer(servers: readonly { readonly port: number }[]): Balancer {
  const hostname = "127.0.0.1";
  const listener = listenOnRandomPort(hostname);
  const tasks: Promise<unknown>[] = [];
  const accepting = (async () => {
    let accepted = 0;
    for await (const client of listener) {
      const { port } = servers[accepted++ % servers.length];
      const server = await Deno.connect({ hostname, port });
      tasks.push(
        client.readable.pipeTo(server.writable).catch(() => {}),
        server.readable.pipeTo(client.writable).catch(() => {}),
      );
    }
  })();
  return {
    url: `redis://${hostname}:${(listener.addr as Deno.NetAddr).port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      await Promise.all(tasks);
    },
  };
}
