/**
 * Streams over `node:net` and `node:tls`, for Node and Bun: with `node_listener.ts` the only
 * modules that name `node:`.
 *
 * All plain sockets of the process read into one buffer (`onread`), which saves an allocation a
 * chunk and memory per connection, and pass it on without a promise.
 *
 * @module
 */
import type { LookupFunction, Socket } from "node:net";
import type { ConnectionOptions, SecureContext } from "node:tls";
import type { Connect, ConnectTarget, OnChunk, TlsOptions, Transport } from "./transport.ts";

type TlsTarget = Extract<ConnectTarget, { kind: "tls" }>;

/** Size of the buffer that sockets read into. */
const READ_BUFFER_BYTES = 64 * 1024;

/**
 * What all plain sockets read into. Node fills it and calls back in one go, and Bun fills it just
 * before it calls back; the callback decodes or copies the bytes before it returns, so no other
 * read comes between.
 */
let readBuffer: Uint8Array | undefined;

/**
 * How long a connection is idle before the system asks whether the other end is there, in
 * milliseconds.
 */
const KEEP_ALIVE_DELAY_MS = 30_000;

/**
 * Opens a stream in Node or Bun: TCP without delay and with keep-alive, TLS, or a Unix domain
 * socket.
 */
export const connect: Connect = async (target, { signal }) => {
  const open = await opener(target);
  return await new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stream = new NodeTransport(target, open);
    const abandon = () => {
      stream.close();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abandon, { once: true });
    stream.opened.then(() => resolve(stream as CallingTransport as Transport), (error) => {
      stream.close();
      reject(error);
    }).finally(() => signal.removeEventListener("abort", abandon));
  });
};

/** What the client calls of a stream that calls back. */
type CallingTransport = Omit<Transport, "read" | "write">;

/** Who gets the bytes of a socket. */
interface Reader {
  readonly onChunk: OnChunk;
  onEnd(error?: unknown): void;
}

/** Passes on what a socket reads and writes by callbacks alone. */
class NodeTransport implements CallingTransport {
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  /**
   * Bytes that arrived while there was no reader; the socket is paused as long as there are any.
   */
  #unread: Uint8Array | undefined;
  #reader: Reader | undefined;
  #ended = false;
  #error: unknown = undefined;

  constructor(target: ConnectTarget, open: Opener) {
    this.#socket = open((count, buffer) => this.#onData(buffer, count));
    this.opened = new Promise((resolve, reject) => {
      this.#socket.once(target.kind === "tls" ? "secureConnect" : "connect", () => resolve());
      this.#socket.on("error", (error: unknown) => {
        this.#error = lastError(error);
        reject(this.#error);
      });
      this.#socket.on("end", () => this.#onEnd());
      this.#socket.on("close", () => {
        this.#onEnd();
        reject(this.#error ?? new Error("the socket was closed"));
      });
    });
  }

  receive(onChunk: OnChunk, onEnd: (error?: unknown) => void): void {
    const unread = this.#unread;
    this.#unread = undefined;
    if (unread && !onChunk(unread, unread.length)) return;
    if (this.#ended) return onEnd(this.#error);
    this.#reader = { onChunk, onEnd };
    this.#socket.resume();
  }

  send(bytes: Uint8Array, onSent: (error?: unknown) => void): void {
    this.#socket.write(bytes, onSent);
  }

  close(): void {
    this.#socket.destroy();
    this.#onEnd();
  }

  unref(): void {
    this.#socket.unref();
  }

  /** Passes bytes to the reader; returns whether the socket may continue to read. */
  #onData(bytes: Uint8Array, count: number): boolean {
    const reader = this.#reader;
    if (!reader) this.#unread = bytes.slice(0, count);
    else if (reader.onChunk(bytes, count)) return true;
    else this.#reader = undefined;
    return false;
  }

  #onEnd(): void {
    this.#ended = true;
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.onEnd(this.#error);
  }
}

/**
 * Takes the first bytes of a buffer, which is used again; returns whether the socket may continue
 * to read.
 */
type OnRead = (count: number, buffer: Uint8Array) => boolean;

/** Opens a socket that passes each chunk to `callback`, and pauses if that returns `false`. */
type Opener = (callback: OnRead) => Socket;

const importNet = async () => builtin("net") ?? await import("node:net");
const importTls = async () => builtin("tls") ?? await import("node:tls");
const importDns = async () => builtin("dns") ?? await import("node:dns");
const importPlain = () => Promise.all([importNet(), sharedLookup()]);
const importSecure = () => Promise.all([importTls(), importNet(), sharedLookup()]);

/**
 * Each is imported once: a client that no test closes connects again after the tests, when Jest
 * refuses an `import()` and fails the run.
 */
let plain: ReturnType<typeof importPlain> | undefined;
let secure: ReturnType<typeof importSecure> | undefined;

/** The modules of Node that are needed here. */
interface Builtins {
  readonly net: typeof import("node:net");
  readonly tls: typeof import("node:tls");
  readonly dns: typeof import("node:dns");
  readonly "fs/promises": typeof import("node:fs/promises");
}

/**
 * Loads a module of Node without `import()`, which fails in a program that was compiled to
 * bytecode; `undefined` where the runtime cannot, as Node before 20.16 and 22.3, and emulations.
 */
function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: Name): Builtins[Name] } };
  try {
    return process?.getBuiltinModule?.(name);
  } catch {
    return undefined; // an emulation of Node may have it throw
  }
}

/**
 * Returns a function that opens a socket to `target`. The modules are imported here, not above,
 * because a process without TLS need not load it, and a bundle for another runtime need not contain
 * them.
 */
async function opener(target: ConnectTarget): Promise<Opener> {
  if (target.kind === "tls") return await tlsOpener(target);
  const [{ connect }, lookup] = await (plain ??= importPlain());
  return (callback) => {
    const buffer = readBuffer ??= new Uint8Array(READ_BUFFER_BYTES);
    // Deno before 2.8 has no `onread`, and no version of it promises to call back before another
    // socket reads.
    const onread = inDeno() ? undefined : { buffer, callback };
    const socket = target.kind === "unix"
      ? connect({ path: target.path, onread })
      : tuned(connect({ host: target.hostname, port: target.port, lookup, onread }));
    return onread ? socket : flowing(socket, callback);
  };
}

/** Whether this is Node's API in Deno, which runs bundles for Node, and npm packages. */
function inDeno(): boolean {
  const { process } = globalThis as { process?: { versions?: { deno?: string } } };
  return process?.versions?.deno !== undefined;
}

/** Has a socket without `onread` pass on what it reads. */
function flowing(socket: Socket, callback: OnRead): Socket {
  return socket.on("data", (chunk: Uint8Array) => {
    if (!callback(chunk.length, chunk)) socket.pause();
  });
}

async function tlsOpener({ hostname, port, tls }: TlsTarget): Promise<Opener> {
  const [{ connect, checkServerIdentity }, { isIP }, lookup] = await (secure ??= importSecure());
  const secureContext = await secureContextOf(tls);
  const name = tls.serverName ?? hostname;
  const options: ConnectionOptions = {
    host: hostname,
    port,
    lookup,
    secureContext,
    rejectUnauthorized: true,
    // Node sends no name by default. An IP address must not be sent (RFC 6066, section 3).
    servername: isIP(name) ? "" : name,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  };
  return (callback) => flowing(tuned(connect(options)), callback);
}

/** The function that looks up host names, for all clients. */
let lookup: Promise<LookupFunction> | undefined;

function sharedLookup(): Promise<LookupFunction> {
  return lookup ??= importDns().then(({ lookup }) => shareLookups(lookup as LookupFunction));
}

/**
 * Shares the look-ups of host names that are under way. The system's cannot be cancelled, and each
 * takes a thread: while no name server answers, every further attempt to connect would leave one
 * more behind.
 *
 * @param lookup Looks up a host name.
 * @returns The same, but with one look-up of a host at a time.
 */
export function shareLookups(lookup: LookupFunction): LookupFunction {
  const waiting = new Map<string, Parameters<LookupFunction>[2][]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options]);
    const others = waiting.get(key);
    if (others) return void others.push(callback);
    const callbacks = [callback];
    waiting.set(key, callbacks);
    lookup(hostname, options, (...answer) => {
      waiting.delete(key);
      for (const each of callbacks) each(...answer);
    });
  };
}

/**
 * What Node says of a host with several addresses, such as `localhost`, has no message: it has the
 * errors of all of them.
 *
 * @param error The error of a socket.
 * @returns The error of the last address; of one alone, the error itself.
 */
export function lastError(error: unknown): unknown {
  return (error as Partial<AggregateError>).errors?.at(-1) ?? error;
}

/** Node remembers both settings until the socket is connected. */
function tuned(socket: Socket): Socket {
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
}

/**
 * The contexts of all clients by their settings: parsing the certificates of all authorities takes
 * tens of milliseconds.
 */
const secureContexts = /* @__PURE__ */ new WeakMap<TlsOptions, Promise<SecureContext>>();

function secureContextOf(tls: TlsOptions): Promise<SecureContext> {
  const known = secureContexts.get(tls) ?? newSecureContext(tls);
  secureContexts.set(tls, known);
  return known;
}

async function newSecureContext({ caCerts, cert, key }: TlsOptions): Promise<SecureContext> {
  const nodeTls = await importTls();
  const ca = caCerts && [...await rootsOf(nodeTls), ...caCerts];
  return nodeTls.createSecureContext({ ca, cert, key });
}

/** The part of `node:tls` that shows authorities. */
interface Authorities {
  readonly rootCertificates: readonly string[];
  /**
   * Since Node 22.15 and 23.10: all that are trusted by default, with those of
   * `NODE_EXTRA_CA_CERTS`.
   */
  getCACertificates?(): string[];
}

/**
 * The authorities that the runtime trusts. Deno shows them with `--allow-sys=ca` alone: `caCerts`
 * replaces them then.
 */
async function rootsOf(nodeTls: Authorities): Promise<readonly string[]> {
  try {
    if (nodeTls.getCACertificates) return nodeTls.getCACertificates();
    return [...nodeTls.rootCertificates, ...await extraAuthorities()];
  } catch {
    return [];
  }
}

/**
 * The file that `NODE_EXTRA_CA_CERTS` names. Node trusts it, and ignores one that it cannot read.
 */
async function extraAuthorities(): Promise<readonly string[]> {
  if (inDeno()) return []; // it would have to ask for permissions
  const { process } = globalThis as { process?: { env: Record<string, string> } };
  const path = process?.env.NODE_EXTRA_CA_CERTS;
  if (!path) return [];
  const { readFile } = builtin("fs/promises") ?? await import("node:fs/promises");
  return await readFile(path, "utf8").then((text) => [text], () => []);
}
