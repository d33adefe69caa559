/**
 * Streams over `cloudflare:sockets`, for Cloudflare Workers: the only module that names
 * `cloudflare:`.
 *
 * A worker may use a stream only within the request that opened it, so a lock client is made in
 * each request and closed at its end. Certificates are checked against the authorities that the
 * platform trusts, and no others can be named.
 *
 * @module
 */
import type { Connect, ConnectTarget, Transport } from "./transport.ts";

/** The part of the platform's socket that is used here. */
interface Socket {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  readonly opened: Promise<unknown>;
  readonly closed: Promise<unknown>;
  close(): Promise<void>;
  startTls(options: { expectedServerHostname: string }): Socket;
}

/** The part of `cloudflare:sockets` that is used here. */
interface Sockets {
  connect(
    address: { hostname: string; port: number },
    options: { secureTransport: "off" | "on" | "starttls" },
  ): Socket;
}

/** What workerd writes in the error for a stream that another request opened. */
const OTHER_REQUEST = /different request/iu;

type TcpTarget = Exclude<ConnectTarget, { kind: "unix" }>;

/** Opens a stream in a worker: TCP, or TLS with the authorities that the platform trusts. */
export const connect: Connect = async (target, { signal }) => {
  const reachable = checkTarget(target);
  const sockets = await loadSockets();
  signal.throwIfAborted();
  const socket = openSocket(sockets, reachable);
  const stream = new WorkersTransport(socket);
  let abandon: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abandon = () => reject(signal.reason);
    signal.addEventListener("abort", abandon, { once: true });
  });
  try {
    await Promise.race([socket.opened, aborted]);
    return stream;
  } catch (error) {
    stream.close();
    throw error;
  } finally {
    signal.removeEventListener("abort", abandon!);
  }
};

/** Replaces `listen` of `node_listener.ts`; rejects, because workers cannot listen. */
export function listen(): Promise<never> {
  const message = "Cannot listen as workers have no such sockets: use 'connect' of a MemoryRedis";
  return Promise.reject(new TypeError(message));
}

/** The target, if a worker can reach its like. */
function checkTarget(target: ConnectTarget): TcpTarget {
  if (target.kind === "unix") {
    throw new TypeError("Cannot connect to a Unix domain socket as workers have none");
  }
  if (target.kind === "tls") {
    for (const name of ["caCerts", "cert", "key"] as const) {
      if (target.tls[name] === undefined) continue;
      throw new TypeError(
        `Cannot connect over TLS as the sockets of workers take no 'tls.${name}': ` +
          "they trust the platform's authorities, and show no certificate of their own",
      );
    }
  }
  return target;
}

/**
 * Imports the platform's module with the first connection, because a bundle may also run elsewhere.
 */
async function loadSockets(): Promise<Sockets> {
  try {
    // @ts-expect-error: only the platform itself has this module, and its types
    return await import("cloudflare:sockets");
  } catch (cause) {
    throw new Error("Cannot connect as this runtime has no 'cloudflare:sockets'", { cause });
  }
}

function openSocket(sockets: Sockets, target: TcpTarget): Socket {
  const { hostname, port } = target;
  const address = { hostname: hostname.includes(":") ? `[${hostname}]` : hostname, port };
  if (target.kind === "tcp") return sockets.connect(address, { secureTransport: "off" });
  const { serverName } = target.tls;
  if (serverName === undefined) return sockets.connect(address, { secureTransport: "on" });
  const socket = sockets.connect(address, { secureTransport: "starttls" });
  ignoreFailure(socket.opened);
  ignoreFailure(socket.closed);
  return socket.startTls({ expectedServerHostname: serverName });
}

/** Web streams as reads into a buffer of the caller's, and writes. */
class WorkersTransport implements Transport {
  readonly #socket: Socket;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  /** The rest of a chunk that was longer than the caller's buffer. */
  #unread: Uint8Array = new Uint8Array();
  /** How many writes are under way. */
  #writes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#reader = socket.readable.getReader();
    this.#writer = socket.writable.getWriter();
    // A read or write rejects with a failure; these promises would report it again.
    for (const end of [socket.opened, socket.closed, this.#reader.closed, this.#writer.closed]) {
      ignoreFailure(end);
    }
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    let bytes = this.#unread;
    while (bytes.length === 0) {
      const { value, done } = await this.#reader.read();
      if (done) return null;
      bytes = value;
    }
    const count = Math.min(bytes.length, buffer.length);
    buffer.set(bytes.subarray(0, count));
    this.#unread = bytes.slice(count); // a part of the chunk would keep all of it alive
    return count;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.#writes++;
    try {
      await this.#writer.write(bytes);
    } catch (error) {
      throw ofOtherRequest(error) ?? error;
    } finally {
      this.#writes--;
    }
    return bytes.length;
  }

  close(): void {
    ignoreFailure(this.#reader.cancel());
    ignoreFailure(this.#socket.close());
    // `close` waits for a blocked write; `abort` without a write would keep the connection open.
    if (this.#writes > 0) ignoreFailure(this.#writer.abort());
  }
}

/**
 * The error for a stream that another request opened, if that is why `error` was thrown; else
 * `undefined`. It is permanent, so the call ends at once: one that tries again succeeds as long as
 * requests come one at a time, and hangs under load.
 */
function ofOtherRequest(error: unknown): Error | undefined {
  if (!(error instanceof Error) || !OTHER_REQUEST.test(error.message)) return undefined;
  const message = "A Worker may use a connection only in the request that opened it: " +
    "create the client in each request";
  return Object.assign(new Error(message, { cause: error }), { permanent: true });
}

function ignoreFailure(promise: Promise<unknown>): void {
  promise.catch(() => {});
}
