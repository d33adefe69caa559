/**
 * Ports on 127.0.0.1.
 *
 * @module
 */
import { systemRandom } from "../time/random.ts";

/**
 * Ports are drawn below the range that systems use for the local end of outgoing connections (from
 * 32 768 on Linux, from 49 152 elsewhere). If a node in that range has crashed, a client that
 * reconnects to it again and again may get the node's own port as its local end, and then talks to
 * itself.
 */
const PORT_MIN = 12_000;
const PORT_MAX = 32_000;
/** Most ports that are tried. */
const PORTS_TRIED_MAX = 20;

/**
 * Calls `start` with a random port, and again with another one if it throws because the port is in
 * use.
 */
export async function onRandomPort<Started>(
  start: (port: number) => Promise<Started>,
): Promise<Started> {
  for (let tried = 1;; tried++) {
    try {
      return await start(
        PORT_MIN + Math.floor(systemRandom.fraction() * (PORT_MAX - PORT_MIN)),
      );
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== "EADDRINUSE" || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}
