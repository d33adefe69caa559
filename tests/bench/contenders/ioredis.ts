/**
 * What the contenders on `ioredis` share.
 *
 * @module
 */

interface IoredisClient {
  once(event: "ready", listener: () => void): void;
  on(event: "error", listener: () => void): void;
  disconnect(): void;
}

/**
 * Loads a peer's package by the name it has in `deno.json`: Deno resolves that by itself, the other runtimes
 * are told of a folder with the packages by the variable BENCH_PACKAGES.
 */
export async function load(name: string): Promise<unknown> {
  if ("Deno" in globalThis) return await import(name);
  const { createRequire } = await import("node:module");
  const { env } = await import("node:process");
  const loaded = createRequire(`${env.BENCH_PACKAGES}/package.json`)(name);
  return { ...loaded, default: loaded.default ?? loaded };
}

/** One `ioredis` client with default options for each address; resolves once all are ready. */
export async function openIoredis(
  urls: readonly string[],
): Promise<{ clients: unknown[]; disconnect: () => void }> {
  const { Redis } = await load("ioredis") as { Redis: new (url: string) => IoredisClient };
  const clients = urls.map((url) => new Redis(url));
  await Promise.all(clients.map((client) =>
    new Promise<void>((resolve) => {
      client.on("error", () => {});
      client.once("ready", resolve);
    })
  ));
  return { clients, disconnect: () => clients.forEach((client) => client.disconnect()) };
}
