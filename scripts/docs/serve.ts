/**
 * Serves a built site on the loopback interface, to look at it.
 *
 * @module
 */

import { extname, join } from "node:path";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};

/** A running server. */
export interface SiteServer extends AsyncDisposable {
  /** The address of the first page. */
  readonly address: string;
}

/**
 * Starts a server, which finds pages as GitHub does: `/options` is `options.html`.
 *
 * @param folder The site.
 * @param base The path below which it is served.
 */
export function serveSite(folder: string, base: string): SiteServer {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, ({ url }) => {
    const path = decodeURIComponent(new URL(url).pathname);
    return path.startsWith(base)
      ? respond(folder, path.slice(base.length))
      : new Response("Not found", { status: 404 });
  });
  return {
    address: `http://127.0.0.1:${server.addr.port}${base}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function respond(folder: string, path: string): Promise<Response> {
  for (const name of [path, `${path}.html`, join(path, "index.html")]) {
    const body = await Deno.readFile(join(folder, name)).catch(() => undefined);
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    if (body !== undefined) return new Response(body, { headers: { "content-type": type } });
  }
  const body = await Deno.readFile(join(folder, "404.html"));
  return new Response(body, { status: 404, headers: { "content-type": TYPES[".html"] } });
}
