/**
 * Has a program in another runtime start real servers and make them fail, by HTTP;
 * `remote_server.ts` is its end of it.
 */
import { type FaultProxy, startProxy } from "../../src/testing/mod.ts";
import { type RedisServer, startServer } from "./servers.ts";

/** Takes requests. Made by {@linkcode startServerControl}. */
export interface ServerControl extends AsyncDisposable {
  readonly url: string;
}

/** A server, and a proxy in front of it. */
interface Proxied {
  readonly server: RedisServer;
  readonly proxy: FaultProxy;
}

/** What a program may ask of a server that it has started. */
const ACTIONS: Record<string, (proxied: Proxied) => unknown> = {
  pause: ({ server }) => server.pause(),
  resume: ({ server }) => server.resume(),
  kill: ({ server }) => server.kill(),
  restart: ({ server }) => server.restart(),
  stop: ({ server }) => server.stop(),
  halfOpen: ({ proxy }) => proxy.halfOpen(),
};

/** Starts taking requests; all servers are stopped at the end of the block. */
export function startServerControl(): ServerControl {
  const started: Proxied[] = [];
  const control = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const [action, index] = new URL(request.url).pathname.slice(1).split("/");
    if (action === "start") {
      const server = await startServer();
      const proxy = await startProxy(server.url).catch(async (error) => {
        await server.stop();
        throw error;
      });
      const index = started.push({ server, proxy }) - 1;
      return Response.json({ url: server.url, proxyUrl: proxy.address, index });
    }
    await ACTIONS[action](started[Number(index)]);
    return Response.json({});
  });
  return {
    url: `http://127.0.0.1:${control.addr.port}`,
    async [Symbol.asyncDispose]() {
      await control.shutdown();
      await Promise.all(started.flatMap(({ server, proxy }) => [server.stop(), proxy.close()]));
    },
  };
}
