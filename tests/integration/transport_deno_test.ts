/** The transport of Deno, by itself. */

import { connect } from "../../src/transport/deno.ts";

Deno.test("connect() in Deno leaves no stream open that opened in the tick of its abort", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const accepting = (async () => {
    for await (const stream of listener) stream.close();
  })();
  for (let round = 0; round < 400; round++) {
    const controller = new AbortController();
    const { signal } = controller;
    const connecting = connect({ kind: "tcp", hostname: "127.0.0.1", port }, { signal });
    const aborted = new Promise<void>((resolve) =>
      setTimeout(() => {
        controller.abort();
        resolve();
      }, 0)
    );
    const endMs = performance.now() + 2;
    while (performance.now() < endMs); // by now the timer is due, and the stream is open
    await connecting.then((stream) => stream.close(), () => {});
    await aborted;
  }
  listener.close();
  await accepting;
});
