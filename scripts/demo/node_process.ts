/**
 * One node in memory, in a process of its own, so that it can be killed and stopped like a Redis server.
 *
 * Its only argument is the port to listen on, on 127.0.0.1. It prints the port once it listens, and ends when its
 * input does.
 *
 * @module
 */

import { MemoryRedis } from "../../src/testing/mod.ts";

const BUFFER_BYTES = 16 * 1024;

/** Answers one connection until it ends. */
async function serve(stream: Deno.TcpConn, server: MemoryRedis): Promise<void> {
  const session = server.session();
  const buffer = new Uint8Array(BUFFER_BYTES);
  stream.setNoDelay(true);
  try {
    for (;;) {
      const count = await stream.read(buffer);
      if (count === null || session.ended) break;
      const writer = stream.writable.getWriter();
      await writer.write(session.push(buffer.slice(0, count)) as Uint8Array<ArrayBuffer>);
      writer.releaseLock();
    }
  } catch {
    // The client is gone, which is its right.
  } finally {
    stream.close();
  }
}

async function accept(listener: Deno.TcpListener): Promise<void> {
  const server = new MemoryRedis();
  for await (const stream of listener) serve(stream, server);
}

// Ctrl-C reaches every process of the terminal; this one leaves ending it to the demo.
Deno.addSignalListener("SIGINT", () => {});
const listener = Deno.listen({ hostname: "127.0.0.1", port: Number(Deno.args[0]) });
accept(listener);
console.log(listener.addr.port);
await Deno.stdin.readable.pipeTo(new WritableStream());
Deno.exit();
