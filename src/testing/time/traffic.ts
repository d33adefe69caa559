/**
 * What passes between clients and the servers of this process, so that a fake clock waits for it.
 *
 * @module
 */

import type { StreamHandler, StreamPeer } from "../../transport/node_listener.ts";

/** Where servers listen, and proxies connect to them. */
export type Network = Pick<typeof import("../../transport/node_listener.ts"), "dial" | "listen">;

/**
 * Connections opened and closed and pieces of data, in either direction, since the process started.
 */
let passed = 0;
/** How many nodes and proxies have been started and not been closed. */
let servers = 0;
let echo: ReturnType<typeof openEcho> | undefined;

/** The network of the runtime, with everything counted that passes. */
export async function countedNetwork(): Promise<Network> {
  const { dial, listen } = await import("../../transport/node_listener.ts");
  return {
    dial: (target, handler) => countedPeer(dial(target, countedHandler(handler))),
    listen: (port, accept) =>
      listen(port, counted((peer) => countedHandler(accept(countedPeer(peer))))),
  };
}

function countedPeer(peer: StreamPeer): StreamPeer {
  return { ...peer, send: counted(peer.send) };
}

function countedHandler(handler: StreamHandler): StreamHandler {
  return {
    onData: counted((bytes) => handler.onData(bytes)),
    onClose: counted(() => handler.onClose()),
  };
}

/** A function whose calls are counted. */
function counted<Args extends unknown[], Result>(act: (...args: Args) => Result): typeof act {
  return (...args) => {
    passed++;
    return act(...args);
  };
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
  await opened?.then(({ close }) => close(), () => {});
}

/**
 * Sends a byte to this process and back, if there are servers in it. The system delivers what was
 * sent on this machine in order, however long that takes, so what was sent before has arrived when
 * the byte is back.
 */
export async function roundTrip(): Promise<void> {
  if (servers === 0) return;
  await (await (echo ??= openEcho())).roundTrip();
}

/** A connection of this process with itself. */
async function openEcho() {
  const { dial, listen } = await import("../../transport/node_listener.ts");
  const listener = await listen(0, (peer) => ({ onData: peer.send, onClose() {} }));
  /** Resolve the round trips that are under way, the oldest first. */
  const waiting: (() => void)[] = [];
  let isOpen = true;
  const peer = dial({ hostname: "127.0.0.1", port: listener.port }, {
    onData: (bytes) => bytes.forEach(() => waiting.shift()!()),
    onClose() { // the last server was closed meanwhile
      isOpen = false;
      for (const resolve of waiting.splice(0)) resolve();
    },
  });
  const roundTrip = () =>
    new Promise<void>((resolve) => {
      if (!isOpen) return resolve();
      waiting.push(resolve);
      peer.send(new Uint8Array(1));
    });
  return { roundTrip, close: listener.close };
}
