/**
 * Where the addresses of the nodes come from. They may contain passwords, so no message shows what was read; a path that
 * is an address by mistake is masked when it is printed.
 *
 * @module
 */
import { UsageError } from "./exit_codes.ts";

/** The name of the credential in systemd's `LoadCredential=hasp-nodes:…`. */
const CREDENTIAL = "hasp-nodes";

/** The options about the nodes. */
export interface AddressOptions {
  /** The addresses on the command line. */
  readonly node?: readonly string[];
  /** A file with the addresses. */
  readonly nodesFile?: string;
}

/** Variables of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a text file. */
export type ReadFile = (path: string) => Promise<string>;

/**
 * Finds the addresses of the nodes, in the first of these places that is given: `--node`, `--nodes-file`, the variable
 * `HASP_NODES`, the file that `HASP_NODES_FILE` names, the file `hasp-nodes` in `CREDENTIALS_DIRECTORY`.
 *
 * @throws {UsageError} If none is given, or a file cannot be read, or contains no address.
 */
export async function findAddresses(
  { node = [], nodesFile }: AddressOptions,
  env: Environment,
  readFile: ReadFile,
): Promise<string[]> {
  if (node.length > 0) return [...node];
  if (nodesFile !== undefined) return await readAddresses(nodesFile, readFile);
  if (env.HASP_NODES) return addressesIn(env.HASP_NODES, "HASP_NODES");
  if (env.HASP_NODES_FILE) return await readAddresses(env.HASP_NODES_FILE, readFile);
  const credential = env.CREDENTIALS_DIRECTORY && `${env.CREDENTIALS_DIRECTORY}/${CREDENTIAL}`;
  const text = credential && await readFile(credential).catch((error) => {
    if (error?.code !== "ENOENT") throw unreadable(credential, error);
  });
  if (typeof text === "string" && credential) return addressesIn(text, credential);
  throw new UsageError(
    "Cannot find the addresses of the nodes: set HASP_NODES or HASP_NODES_FILE, or pass --nodes-file or --node",
  );
}

async function readAddresses(path: string, readFile: ReadFile): Promise<string[]> {
  const text = await readFile(path).catch((error) => {
    throw unreadable(path, error);
  });
  return addressesIn(text, path);
}

function unreadable(path: string, error: { code?: unknown; message?: unknown }): UsageError {
  return new UsageError(`Cannot read the addresses of the nodes from ${path}: ${error.message}`);
}

/** A text with the addresses, as `createRedlock` takes it; `#` at the start of a word begins a comment, which is left out. */
function addressesIn(text: string, place: string): string[] {
  const addresses = text.replaceAll(/(?<!\S)#.*$/gmu, "");
  if (/[^\s,]/u.test(addresses)) return [addresses];
  throw new UsageError(`Cannot find the addresses of the nodes: ${place} contains no address`);
}
