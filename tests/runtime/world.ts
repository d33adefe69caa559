/**
 * The servers that every runtime finds: healthy ones, hung ones, addresses where nobody listens,
 * TLS and a socket.
 */

import { makeCertificates } from "../support/certificates.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";
import { startSniServer } from "../support/sni_server.ts";
import type { Context, Feature } from "./context.ts";

/** The servers of one whole run. Made by {@linkcode startWorld}. */
export interface World extends AsyncDisposable {
  /** Five healthy servers. */
  readonly urls: readonly string[];
  /** Two servers that answer nothing. */
  readonly hungUrls: readonly string[];
  /** Addresses where nobody listens. */
  readonly deadUrls: readonly string[];
  /** The file of the authority that signed the certificates. */
  readonly authorityFile: string;
  /** What one runtime is told; it has servers of its own that it may silence. */
  contextFor(lacks: readonly Feature[]): Promise<Context>;
}

/** Starts everything; it is stopped at the end of the block. */
export async function startWorld(): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const certificates = stack.use(await makeCertificates());
  const [healthy, hung, tls, named] = await Promise.all([
    startServers(5).then((it) => stack.use(it)),
    startServers(2).then((it) => stack.use(it)),
    startServer({ tls: certificates.server, unixSocket: true }).then((it) => stack.use(it)),
    startServer({ tls: certificates.namedServer }).then((it) => stack.use(it)),
  ]);
  for (const server of hung) await server.pause();
  const sni = stack.use(await startSniServer(certificates.server));
  const { authority: { cert: authority, certFile: authorityFile } } = certificates;
  const deadUrls = [1, 2, 3].map((port) => `redis://127.0.0.1:${port}`);
  const running = stack.move();
  return {
    urls: healthy.urls,
    hungUrls: hung.urls,
    deadUrls,
    authorityFile,
    contextFor: async (lacks) => ({
      urls: healthy.urls,
      hungUrls: hung.urls,
      silentUrls: running.use(await startServers(3)).urls,
      deadUrls,
      tlsUrl: tlsUrl(tls),
      namedTlsUrl: tlsUrl(named),
      sniUrl: `rediss://localhost:${sni.port}`,
      authority,
      unixUrl: `redis+unix://${tls.socketPath}`,
      prefix: crypto.randomUUID(),
      lacks,
    }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function tlsUrl({ tlsPort }: RedisServer): string {
  return `rediss://127.0.0.1:${tlsPort}`;
}
