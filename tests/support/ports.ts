/** Ports of 127.0.0.1 that two tests never share, in whatever process they run. */

/** How many ports are tried before a start is given up. */
const PORTS_TRIED_MAX = 20;

/**
 * Ports are drawn below the range from which systems draw the local port of outgoing connections
 * (32 768 on Linux, 49 152 elsewhere): a client that keeps connecting to a killed server on a port
 * inside that range may be given the very same port for its own end, and so talk to itself.
 */
const PORT_MIN = 12_000;
const PORT_MAX = 32_000;

/**
 * Only Linux has sockets whose names are no files: so one process shows the others which ports it
 * has, until it ends.
 */
const IS_RESERVING = Deno.build.os === "linux";

/** A port of 127.0.0.1 that is nobody else's. Made by {@linkcode reservePort}. */
export interface ReservedPort extends Disposable {
  readonly port: number;
}

/**
 * Reserves a port of 127.0.0.1 on which nobody listens, outside the range of outgoing connections.
 * Nobody else reserves it meanwhile, in whatever process: so a server that is killed is not found
 * to be another test's.
 */
export function reservePort(): ReservedPort {
  for (let tried = 1;; tried++) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN));
    const stack = new DisposableStack();
    try {
      const path = `\0hasp-test-port-${port}`;
      if (IS_RESERVING) stack.use(Deno.listen({ transport: "unix", path }));
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return { port, [Symbol.dispose]: () => stack.dispose() };
    } catch (error) {
      stack.dispose();
      if (!(error instanceof Deno.errors.AddrInUse) || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}
