/**
 * Where the addresses of the nodes come from, and the prefix of keys that a file has beside them.
 * Addresses may contain passwords, so no message shows what was read; a path that is an address by
 * mistake is masked when it is printed.
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

/** What a place says about the nodes. */
export interface FoundNodes {
  /** Their addresses, which may contain passwords. */
  readonly addresses: readonly string[];
  /** What the keys of locks begin with, if the place says so. */
  readonly keyPrefix?: string | undefined;
}

/** Variables of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a text file. */
export type ReadFile = (path: string) => Promise<string>;

/**
 * Finds the addresses of the nodes, in the first of these places that is given: `--node`,
 * `--nodes-file`, the variable `HASP_NODES`, the file that `HASP_NODES_FILE` names, the file
 * `hasp-nodes` in `CREDENTIALS_DIRECTORY`.
 *
 * @throws {UsageError} If none is given, or a file cannot be read, or contains no address.
 */
export async function findNodes(
  { node = [], nodesFile }: AddressOptions,
  env: Environment,
  readFile: ReadFile,
): Promise<FoundNodes> {
  if (node.length > 0) return { addresses: node };
  if (nodesFile === undefined && env.HASP_NODES) return nodesIn(env.HASP_NODES, "HASP_NODES");
  const { HASP_NODES_FILE, CREDENTIALS_DIRECTORY } = env;
  const credential = CREDENTIALS_DIRECTORY && `${CREDENTIALS_DIRECTORY}/${CREDENTIAL}`;
  const file = nodesFile ?? (HASP_NODES_FILE || credential);
  const text = file && await readFile(file).catch((error) => {
    if (file === credential && error.code === "ENOENT") return undefined;
    throw new UsageError(`Cannot read the addresses of the nodes from ${file}: ${error.message}`);
  });
  if (file && text !== undefined) return nodesIn(text, file);
  throw new UsageError(
    "Cannot find the addresses of the nodes: set HASP_NODES or HASP_NODES_FILE, or pass --nodes-file or --node",
  );
}

/** A line that says what the keys of locks begin with. */
const KEY_PREFIX = /^[^\S\n]*key-prefix[^\S\n]+(\S+)[^\S\n]*$/mu;

/**
 * What a text says about the nodes: addresses, as `createRedlock` takes them in one text, and at
 * most one line `key-prefix app:`; `#` at the start of a word begins a comment, which is left out.
 */
function nodesIn(text: string, place: string): FoundNodes {
  const code = text.replaceAll(/(?<!\S)#.*$/gmu, "");
  const [, keyPrefix] = KEY_PREFIX.exec(code) ?? [];
  const addresses = code.replace(KEY_PREFIX, "");
  if (/[^\s,]/u.test(addresses)) return { addresses: [addresses], keyPrefix };
  throw new UsageError(`Cannot find the addresses of the nodes: ${place} contains no address`);
}
