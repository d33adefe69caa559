/**
 * A store of results over HTTP: `PUT` writes one, and `GET` finds it. Neither is quick, so that two jobs at the same time
 * would both find nothing.
 *
 * @module
 */

/** How long the store takes, in milliseconds. */
const TAKES_MS = 20;

/** A store. Made by {@linkcode startResultsStore}. */
export interface ResultsStore extends AsyncDisposable {
  readonly url: string;
}

/** Starts a store. */
export function startResultsStore(): ResultsStore {
  const results = new Map<string, string>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const found = results.get(pathname);
    await new Promise((resolve) => setTimeout(resolve, TAKES_MS));
    if (request.method !== "PUT") return new Response(found, { status: found ? 200 : 404 });
    results.set(pathname, await request.text());
    return new Response("stored", { status: 201 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
