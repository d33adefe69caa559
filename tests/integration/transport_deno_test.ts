/** The transport of Deno. */

import { assertEquals } from "@std/assert";
import { connect } from "../../src/transport/deno.ts";
import { plainCommand } from "../support/plain_command.ts";
import { startServers } from "../support/servers.ts";

Deno.test("a lock in Deno does not read `process`, which would load what emulates Node", async () => {
  await using servers = await startServers(1);
  const program = `
    Object.defineProperty(globalThis, "process", { get: () => console.log("process is read") });
    const { createRedlock } = await import("${import.meta.resolve("../../mod.ts")}");
    await using redlock = createRedlock(${JSON.stringify(servers.urls)});
    await redlock.using("a", ({ held }) => console.log(held));
  `;
  const args = ["eval", "--no-config", program];
  const { stdout } = await plainCommand(Deno.execPath(), { args }).output();
  assertEquals(new TextDecoder().decode(stdout), "true\n");
});

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
