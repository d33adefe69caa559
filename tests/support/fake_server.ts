/** Servers on loopback that do what a real server cannot be brought to do. */

/** A running one. Made by {@linkcode startFakeServer}. */
export interface FakeServer extends AsyncDisposable {
  /** Address for clients. */
  readonly url: string;
  /** Connections that it has accepted. */
  readonly accepted: number;
}

/** The first line of a command. */
const COMMAND = /^\*\d+\r$/gm;

/** Starts a server; `act` is called with each connection, which is closed when it returns. */
export function startFakeServer(act: (conn: Deno.TcpConn) => Promise<void>): FakeServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const conns = new Set<Deno.TcpConn>();
  const serving = new Set<Promise<void>>();
  let accepted = 0;
  const accepting = (async () => {
    for await (const conn of listener) {
      accepted++;
      conns.add(conn);
      const served = act(conn).catch(() => {}).finally(() => {
        if (conns.delete(conn)) conn.close();
        serving.delete(served);
      });
      serving.add(served);
    }
  })();
  return {
    url: `redis://127.0.0.1:${listener.addr.port}`,
    get accepted() {
      return accepted;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const conn of conns) conn.close();
      conns.clear();
      await Promise.all(serving);
    },
  };
}

/** For {@linkcode startFakeServer}: gives the same bytes for an answer to every command. */
export function answering(answer: string): (conn: Deno.TcpConn) => Promise<void> {
  return async (conn) => {
    const chunk = new Uint8Array(65_536);
    for (let length; (length = await conn.read(chunk)) !== null;) {
      const text = new TextDecoder().decode(chunk.subarray(0, length));
      const answers = answer.repeat(text.match(COMMAND)?.length ?? 0);
      await conn.write(new TextEncoder().encode(answers));
    }
  };
}
