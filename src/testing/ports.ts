/**
 * Ports on 127.0.0.1.
 *
 * @module
 */
import { systemRandom } from "../time/random.ts";
import type { Listener } from "../transport/node_listener.ts";
import { serverClosed, serverStarted } from "./time/traffic.ts";

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

/** The port of a node or a proxy, which a test opens and closes. */
export class Port {
  readonly #listen: () => Promise<Listener>;
  #listener: Listener | undefined;
  #changed: Promise<void> = Promise.resolve();
  #isOver = false;

  /** @param listen Listens on it. */
  constructor(listen: () => Promise<Listener>) {
    this.#listen = listen;
  }

  /** Whether it takes connections. */
  get isOpen(): boolean {
    return this.#listener !== undefined;
  }

  /** Whether it was closed for good. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Opens it for the first time. */
  start(): Promise<void> {
    return this.change(async () => {
      await this.open();
      serverStarted();
    });
  }

  /** Closes it for good. Idempotent. */
  async end(close: () => Promise<void>): Promise<void> {
    const first = !this.#isOver;
    this.#isOver = true;
    await this.change(close);
    if (first) await serverClosed();
  }

  /** Opens or closes it, when all that was asked for before is done. */
  change(change: () => Promise<void>): Promise<void> {
    const changed = this.#changed.then(change);
    this.#changed = changed.catch(() => {});
    return changed;
  }

  /** Takes connections; called in {@linkcode change}, as {@linkcode close}. */
  async open(): Promise<void> {
    this.#listener ??= await this.#listen();
  }

  /** Refuses connections, and resets those that are open. */
  async close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.close();
  }
}
