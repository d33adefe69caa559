/**
 * The seam between the client and the runtime: what a stream must be able to do. These are types
 * alone: in the npm package each transport is a file of its own, and Deno's imports no shared one.
 *
 * @module
 */

/** A connected byte stream: a structural subset of `Deno.Conn`. */
export interface Transport {
  /**
   * Reads up to `buffer.length` bytes. Resolves to the number of bytes, at least 1, or to `null` at
   * the end of the stream; anything else ends the connection.
   */
  read(buffer: Uint8Array): Promise<number | null>;
  /**
   * Writes bytes from the start of `bytes`, which does not change meanwhile. Must not change them:
   * other servers get the same. Resolves to the number of bytes written, at least 1; anything else,
   * such as the `undefined` of a `WritableStream`, ends the connection.
   */
  write(bytes: Uint8Array): Promise<number>;
  /** Closes the stream at once. Pending reads and writes settle. */
  close(): void;
  /**
   * Lets the process end while this stream is open. Missing if the runtime has nothing like it, as
   * workers, where a stream ends with its request: the client sends no `PING` on such a stream when
   * it is idle.
   */
  unref?: (() => void) | undefined;
  /**
   * Reads without a promise for each chunk, in place of `read`. Missing, as `send` then is: the
   * client calls `read` and `write`.
   *
   * @param onChunk Called with each chunk: the first so many bytes of an array, which is used again
   * afterwards. If it returns `false`, it is not called until the next call of `receive`.
   * @param onEnd Called at the end of the stream, with an error if it broke; also after `close`.
   */
  receive?: ((onChunk: OnChunk, onEnd: (error?: unknown) => void) => void) | undefined;
  /**
   * Writes all of `bytes` without a promise, in place of `write`.
   *
   * @param bytes The bytes, as for `write`.
   * @param onSent Called once they are written, with an error if that failed.
   */
  send?: ((bytes: Uint8Array, onSent: (error?: unknown) => void) => void) | undefined;
}

/** Takes the first `count` of some bytes; returns whether the stream may continue to read. */
export type OnChunk = (bytes: Uint8Array, count: number) => boolean;

/** TLS settings of a connection; certificates and keys are in PEM format. */
export interface TlsOptions {
  /**
   * Certificates of additional authorities to trust, besides the runtime's own. In Deno, with
   * `cert` and without `--allow-sys=ca`, they are the only ones.
   *
   * @default {none}
   */
  caCerts?: string[] | undefined;
  /**
   * Certificate chain of the client, if the server requires one.
   *
   * @default {none}
   */
  cert?: string | undefined;
  /**
   * Private key for `cert`.
   *
   * @default {none}
   */
  key?: string | undefined;
  /**
   * Name that the server's certificate must contain.
   *
   * @default {the host name of the address}
   */
  serverName?: string | undefined;
}

/** The server that a {@linkcode Connect} function connects to. */
export type ConnectTarget =
  | { readonly kind: "tcp"; readonly hostname: string; readonly port: number }
  | {
    readonly kind: "tls";
    readonly hostname: string;
    readonly port: number;
    readonly tls: TlsOptions;
  }
  | { readonly kind: "unix"; readonly path: string };

/**
 * A function that opens a stream to a server. It rejects if the stream cannot be opened, or soon
 * after `signal` aborts, and leaves nothing open then. If its error, or an error of the stream, has
 * `permanent: true`, calls that need the server end at once in place of trying again.
 */
export type Connect = (
  target: ConnectTarget,
  options: { signal: AbortSignal },
) => Promise<Transport>;
