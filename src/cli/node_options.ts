/**
 * The options that all commands share: where the nodes are, and how to reach them.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import process from "node:process";
import { createRedlock, type Redlock, type RedlockOptions, type TlsOptions } from "../../mod.ts";
import { nameOf } from "../process_name.ts";
import { type AddressOptions, findNodes } from "./addresses.ts";
import { UsageError } from "./exit_codes.ts";

/** How each address begins: a password may have spaces and commas. */
const ADDRESS_START = /(?<![^\s,])[a-z][a-z0-9+.-]*:\/\//giu;

/** The options about the nodes. */
export interface NodeOptions extends AddressOptions {
  /** A file with the certificates of authorities to trust. */
  readonly caFile?: string;
  /** A file with the client's certificate. */
  readonly certFile?: string;
  /** A file with the key of the client's certificate. */
  readonly keyFile?: string;
  /** What the keys of locks begin with. */
  readonly keyPrefix?: string;
  /** Timeout for one node's answer, in milliseconds. */
  readonly nodeTimeout?: number;
}

/** A lock client, and what the keys of its locks begin with. */
export interface OpenedClient extends AsyncDisposable {
  readonly redlock: Redlock;
  readonly keyPrefix: string;
  /** How many nodes there are. */
  readonly nodeCount: number;
}

/**
 * Creates the lock client that the command line describes.
 *
 * @throws {UsageError} If no addresses are given, or a file cannot be read.
 */
export async function openClient(
  options: NodeOptions,
  redlockOptions: RedlockOptions = {},
): Promise<OpenedClient> {
  const found = await findNodes(options, process.env, (path) => readFile(path, "utf8"));
  const { addresses, keyPrefix: filePrefix = "" } = found;
  const { keyPrefix = filePrefix, nodeTimeout: nodeTimeoutMs } = options;
  // of one, an error names no place in a list; of several, the one that is wrong
  const redlock = createRedlock(addresses.length === 1 ? addresses[0] : addresses, {
    onEvent: () => {}, // the commands report by themselves
    clientName: `hasp:${processName()}`,
    ...redlockOptions,
    tls: await readTls(options),
    keyPrefix,
    nodeTimeoutMs,
  });
  const nodeCount = addresses.join(" ").match(ADDRESS_START)!.length; // else they were refused
  return { redlock, keyPrefix, nodeCount, [Symbol.asyncDispose]: () => redlock.close() };
}

/**
 * The machine and the process, as `web-3:1234`: at most 64 printable ASCII characters without
 * spaces.
 */
export function processName(): string {
  let host = "";
  try {
    host = hostname();
  } catch {
    // Deno may not permit it: then the process has to do.
  }
  return nameOf(host, process.pid);
}

/** The TLS settings, if there are any. */
async function readTls(
  { caFile, certFile, keyFile }: NodeOptions,
): Promise<TlsOptions | undefined> {
  const [ca, cert, key] = await Promise.all([caFile, certFile, keyFile].map(readOptional));
  if (!ca && !cert && !key) return undefined;
  return { ...ca && { caCerts: [ca] }, ...cert && { cert }, ...key && { key } };
}

/** Reads a file if a path is given; an empty one, as in `HASP_CA_FILE=`, counts as missing. */
async function readOptional(path: string | undefined): Promise<string | undefined> {
  if (!path) return undefined;
  return await readFile(path, "utf8").catch((error) => {
    throw new UsageError(`Cannot read ${path}: ${error.message}`);
  });
}
