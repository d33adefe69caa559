/**
 * Streams over `Deno.connect`: the only module that names `Deno`. The npm package has it too.
 *
 * @module
 */
import type { Connect, ConnectTarget, Transport } from "./transport.ts";

type TlsTarget = Extract<ConnectTarget, { kind: "tls" }>;

/** Opens a stream in Deno: TCP without delay and with keep-alive, TLS, or a Unix domain socket. */
export const connect: Connect = async (target, { signal }) => {
  signal.throwIfAborted();
  switch (target.kind) {
    case "tcp":
      return await connectTcp(target.hostname, target.port, signal);
    case "tls":
      return await connectTls(target, signal);
    case "unix":
      return await abandonable(Deno.connect({ transport: "unix", path: target.path }), signal);
  }
};

/**
 * Deno throws the reason of a signal that aborts in the tick in which the stream opens, and leaves
 * the stream open. So it is given a signal that throws nothing, and the stream is closed here.
 */
async function connectTcp(hostname: string, port: number, signal: AbortSignal) {
  const controller = new AbortController();
  controller.signal.throwIfAborted = () => {};
  const abort = () => controller.abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    const stream = await Deno.connect({ hostname, port, signal: controller.signal });
    if (signal.aborted) {
      stream.close();
    } else {
      stream.setNoDelay(true);
      stream.setKeepAlive(true);
    }
    return stream;
  } finally {
    signal.removeEventListener("abort", abort);
    signal.throwIfAborted();
  }
}

async function connectTls(target: TlsTarget, signal: AbortSignal): Promise<Transport> {
  const { hostname, port, tls } = target;
  if (tls.cert !== undefined) {
    // `Deno.connectTls` has no signal and no server name, and `Deno.startTls` has no client
    // certificate.
    const node = await import("./node.ts");
    return await node.connect(target, { signal });
  }
  let stream: Deno.TcpConn | Deno.TlsConn = await connectTcp(hostname, port, signal);
  const close = () => closeQuietly(stream);
  signal.addEventListener("abort", close, { once: true });
  const options = { hostname: tls.serverName ?? hostname, caCerts: tls.caCerts };
  try {
    stream = await Deno.startTls(stream, options); // an invalid name leaves it open
    signal.throwIfAborted();
    await stream.handshake(); // so that a refused certificate fails the connection, not a command
    return stream;
  } catch (error) {
    close();
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", close);
  }
}

function closeQuietly(stream: Transport): void {
  try {
    stream.close();
  } catch {
    // It is closed already, or the TLS stream owns it.
  }
}

/**
 * Adds a signal to a call without one: rejects on abort, and closes the stream if it opens later.
 */
function abandonable<Stream extends Transport>(
  connecting: Promise<Stream>,
  signal: AbortSignal,
): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const abandon = () => reject(signal.reason);
    signal.addEventListener("abort", abandon, { once: true });
    connecting.then((stream) => {
      if (signal.aborted) stream.close();
      resolve(stream);
    }, reject).finally(() => signal.removeEventListener("abort", abandon));
  });
}
