/**
 * A real server that another process has started, for programs in any runtime. See
 * `server_control.ts`.
 */
import type { FaultyServer } from "./crowd.ts";
import type { BreakableServer } from "./reconnecting.ts";

/** A server, and what can be made of it. */
export interface RemoteServer extends FaultyServer, BreakableServer {
  stop(): Promise<unknown>;
}

/**
 * Starts a server.
 *
 * @param controlUrl Where to ask for it.
 */
export async function startRemoteServer(controlUrl: string): Promise<RemoteServer> {
  const ask = async (path: string) => {
    const response = await fetch(`${controlUrl}/${path}`, { method: "POST" });
    if (!response.ok) throw new Error(`Cannot ${path} server: status ${response.status}`);
    return await response.json();
  };
  const { url, proxyUrl, index } = await ask("start");
  return {
    url,
    proxyUrl,
    pause: () => ask(`pause/${index}`),
    resume: () => ask(`resume/${index}`),
    kill: () => ask(`kill/${index}`),
    restart: () => ask(`restart/${index}`),
    halfOpen: () => ask(`halfOpen/${index}`),
    stop: () => ask(`stop/${index}`),
  };
}
