/**
 * Streams over `Deno.connect`: the only module that names `Deno`. The npm package has it too.
 *
 * @module
 */
import {
  closeTransport,
  type Connect,
  type ConnectTarget,
  type Transport,
  whenOpen,
} from "./transport.ts";

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
      return await connectUnix(target.path, signal);
  }
};

/**
 * Deno throws the reason of a signal that aborts in the tick in which the stream opens, and leaves
 * the stream open. So it is given a signal that throws nothing.
 */
async function connectTcp(hostname: string, port: number, signal: AbortSignal) {
  const controller = new AbortController();
  controller.signal.throwIfAborted = () => {};
  const connecting = Deno.connect({ hostname, port, signal: controller.signal });
  const stream = await whenOpen(connecting, signal, () => controller.abort());
  stream.setNoDelay(true);
  stream.setKeepAlive(true);
  return stream;
}

function connectUnix(path: string, signal: AbortSignal): Promise<Transport> {
  const connecting = Deno.connect({ transport: "unix", path }); // it takes no signal
  return whenOpen(connecting, signal, () => {});
}

async function connectTls(target: TlsTarget, signal: AbortSignal): Promise<Transport> {
  const { hostname, port, tls } = target;
  if (tls.cert !== undefined) {
    // `Deno.connectTls` has no signal and no server name, and `Deno.startTls` has no client
    // certificate.
    const node = await import("./node.ts");
    return await node.connect(target, { signal });
  }
  const plain = await connectTcp(hostname, port, signal);
  let stream: Transport = plain; // an invalid name leaves it open
  const securing = async () => {
    const options = { hostname: tls.serverName ?? hostname, caCerts: tls.caCerts };
    const secured = stream = await Deno.startTls(plain, options);
    signal.throwIfAborted();
    await secured.handshake(); // so that a refused certificate fails the connection, not a command
    return secured;
  };
  return await whenOpen(securing(), signal, () => closeTransport(stream));
}
