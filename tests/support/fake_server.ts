/**
 * A server on loopback that gives the same bytes for an answer to whatever it is sent: for answers that a real
 * server cannot be brought to give.
 *
 * @module
 */

import { listenOnRandomPort } from "./ports.ts";

/** A running fake. Made by {@linkcode startFakeServer}. */
export interface FakeServer extends AsyncDisposable {
  /** Address for clients. */
  readonly url: string;
}

/** The first line of a command. */
const COMMAND = /^\*\d+\r$/gm;

/** Starts a server that writes `answer` once for each command it reads. */
export function startFakeServer(answer: string): FakeServer {
  const listener = listenOnRandomPort("127.0.0.1");
  const conns = new Set<Deno.Conn>();
  const serving: Promise<void>[] = [];
  const serve = async (conn: Deno.Conn) => {
    const chunk = new Uint8Array(65_536);
    for (;;) {
      const length = await conn.read(chunk).catch(() => null);
      if (length === null) break;
      const text = new TextDecoder().decode(chunk.subarray(0, length));
      const answers = answer.repeat(text.match(COMMAND)?.length ?? 0);
      await conn.write(new TextEncoder().encode(answers)).catch(() => {});
    }
    if (conns.delete(conn)) conn.close();
  };
  const accepting = (async () => {
    for await (const conn of listener) {
      conns.add(conn);
      serving.push(serve(conn));
    }
  })();
  return {
    url: `redis://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const conn of conns) conn.close();
      conns.clear();
      await Promise.all(serving);
    },
  };
}
