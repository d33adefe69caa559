/**
 * What passes between clients and the servers of this process, so that a fake clock waits for it.
 *
 * @module
 */
import type { Transport } from "../../transport/transport.ts";
import { connect } from "../runtime_stream.ts";

/**
 * Connections opened and closed and pieces of data, in either direction, since the process started.
 */
let passed = 0;
/** How many nodes and proxies have been started and not been closed. */
let servers = 0;
let echo: Promise<Echo> | undefined;

/** Called for everything that passes. */
export function countTraffic(): void {
  passed++;
}

/** Returns the count. */
export function trafficCount(): number {
  return passed;
}

/** Called when a node or proxy is started. */
export function serverStarted(): void {
  servers++;
}

/** Called when one is closed. */
export async function serverClosed(): Promise<void> {
  if (--servers === 0) await closeEcho();
}

/**
 * Closes the connection of {@linkcode roundTrip}, which opens another one when it is called again.
 */
export async function closeEcho(): Promise<void> {
  const opened = echo;
  echo = undefined;
  // `roundTrip` rejects if it could not be opened
  await opened?.then(({ close }) => close(), () => {});
}

/**
 * Sends a byte to this process and back, if there are servers in it. The system delivers what was
 * sent on this machine in order, however long that takes, so what was sent before has arrived when
 * the byte is back.
 */
export async function roundTrip(): Promise<void> {
  if (servers === 0) return;
  await (await (echo ??= Echo.open())).roundTrip();
}

/** A connection of this process with itself. */
class Echo {
  /** Closes both ends. */
  readonly close: () => Promise<void>;
  readonly #stream: Transport;
  /** Round trips happen one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(stream: Transport, close: () => Promise<void>) {
    this.#stream = stream;
    this.close = close;
  }

  static async open(): Promise<Echo> {
    const { listen } = await import("../../transport/node_listener.ts");
    const listener = await listen(0, (peer) => ({
      onData: (bytes) => peer.send(bytes),
      onClose() {},
    }));
    const { signal } = new AbortController();
    const target = { kind: "tcp", hostname: "127.0.0.1", port: listener.port } as const;
    const stream = await connect(target, { signal });
    return new Echo(stream, async () => {
      stream.close();
      await listener.close();
    });
  }

  roundTrip(): Promise<unknown> {
    const byte = new Uint8Array(1);
    return this.#last = this.#last.then(async () => {
      await this.#stream.write(byte);
      await this.#stream.read(byte);
    }).catch(() => {}); // the last server was closed meanwhile
  }
}
