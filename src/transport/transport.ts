/**
 * The seam between the client and the runtime: what a connection must be able to do.
 *
 * @module
 */

/** A connected byte stream: a structural subset of `Deno.Conn`. */
export interface Transport {
  /** Reads up to `buffer.length` bytes; resolves to how many, or to `null` at the end of the stream. */
  read(buffer: Uint8Array): Promise<number | null>;
  /** Writes from the start of `bytes`; resolves to how many bytes were taken. `bytes` stays as it is until then. */
  write(bytes: Uint8Array): Promise<number>;
  /** Closes the stream at once; a pending read or write settles. */
  close(): void;
  /** Where there is such a thing: lets the process end although this stream is open. */
  unref?(): void;
}

/** TLS settings, all in PEM. */
export interface TlsOptions {
  /** Certificates of authorities to trust beside the runtime's own. */
  caCerts?: string[];
  /** The client's certificate chain, where the server asks for one. */
  cert?: string;
  /** The private key that belongs to `cert`. */
  key?: string;
  /** The name that the server's certificate must bear, where it is not the host's. */
  serverName?: string;
}

/** Where to connect to. */
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
 * Opens a stream. Rejects where it cannot be opened, and soon after `signal` aborts; then nothing stays open.
 */
export type Connect = (
  target: ConnectTarget,
  options: { signal: AbortSignal },
) => Promise<Transport>;
