/** Reading a request as what it is to the locks: who wants to acquire, extend or release what. */
import {
  ACQUIRE_ANY,
  ACQUIRE_COUNTED,
  ACQUIRE_OR_WAIT,
  ACQUIRE_SHARED,
  ADOPT,
  EXTEND,
  EXTEND_SHARED,
  GIVE_BACK,
  RELEASE,
  RELEASE_QUEUED,
} from "./library.ts";

/** What a command is about, if it is about a lock. */
export interface LockCommand {
  readonly operation: "acquire" | "extend" | "release";
  readonly keys: readonly string[];
  readonly value: string;
  /** Whether it may be about a lock in shared mode. */
  readonly shared?: boolean;
  /** In an adoption, the value that it replaces. */
  readonly replaces?: string;
  /** Whether it ends the lock: a release, or one that shortens the keys for `atLeastMs`. */
  readonly ends: boolean;
}

const OPERATIONS = new Map<string, LockCommand["operation"]>(
  ([
    ["acquire", ACQUIRE_OR_WAIT],
    ["acquire", ACQUIRE_COUNTED],
    ["acquire", ADOPT],
    ["release", GIVE_BACK],
    ["release", RELEASE_QUEUED],
    ["acquire", ACQUIRE_ANY],
    ["acquire", ACQUIRE_SHARED],
    ["extend", EXTEND_SHARED],
  ] as const).flatMap(([operation, { sha1, source }]) => [[sha1, operation], [source, operation]]),
);

/** How many arguments the scripts for many locks have for each: the first is the value. */
const VALUES_OF_GROUPS = new Map(
  ([
    ["release", 1, RELEASE],
    ["extend", 2, EXTEND],
  ] as const).flatMap(([operation, step, { sha1, source }]) => [
    [sha1, { operation, step }],
    [source, { operation, step }],
  ]),
);

/** Whether a command calls a script that may be about locks in shared mode. */
function isOfReaders([, script]: readonly string[]): boolean {
  return [ACQUIRE_SHARED, EXTEND_SHARED, RELEASE_QUEUED]
    .some(({ sha1, source }) => script === sha1 || script === source);
}

/**
 * What a request is about, where it is about locks: a group of releases, or of extensions, is about
 * each of them, and one of several keys about each key.
 */
export function lockCommands(words: readonly string[]): LockCommand[] {
  const values = VALUES_OF_GROUPS.get(words[1]);
  if (!values) return [lockCommand(words) ?? []].flat();
  const count = Number(words[2]);
  return words.slice(3, 3 + count).map((key, index) => ({
    operation: values.operation,
    ends: values.operation === "release",
    keys: [key],
    value: words[3 + count + values.step * index] ?? words[3 + count],
  }));
}

function lockCommand(words: readonly string[]): LockCommand | undefined {
  if (words[0] === "SET") {
    return { operation: "acquire", keys: [words[1]], value: words[2], ends: false };
  }
  if (words[0] !== "EVALSHA" && words[0] !== "EVAL") return undefined;
  const operation = OPERATIONS.get(words[1]);
  if (!operation) return undefined;
  const count = Number(words[2]);
  const keys = words.slice(3, 3 + count);
  if (words[1] === ACQUIRE_ANY.sha1 || words[1] === ACQUIRE_ANY.source) {
    const [number, value] = words.slice(3 + count);
    return { operation, keys: [keys[Number(number) - 1]], value, ends: false };
  }
  const [value, second, keeps] = words.slice(3 + count);
  const ends = operation === "release" || operation === "extend" && keeps !== undefined;
  if (isOfReaders(words)) return { operation, keys, value, ends, shared: true };
  if (words[1] !== ADOPT.sha1 && words[1] !== ADOPT.source) return { operation, keys, value, ends };
  return { operation, keys, value: second, ends, replaces: value };
}
