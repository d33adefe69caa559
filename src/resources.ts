/**
 * Which resources can be locked, and what a client calls the sets of their keys for which its
 * calls queue up.
 *
 * @module
 */
import { quoted } from "./printable.ts";
import {
  check,
  formError,
  isName,
  KEY_TEXT,
  NAME,
  numberThat,
  rangeError,
  typeError,
} from "./validate.ts";

/**
 * Most resources of one lock: each is a key of one script, and a script blocks its node while it
 * runs.
 */
export const RESOURCES_MAX = 1_000;
/**
 * What the names of all keys and channels begin with that the library adds to a database: queues,
 * counters, the creation marker. No lock's key begins with it, so none is overwritten.
 */
const RESERVED_PREFIX = "hasp:";

/**
 * Most resources of which a call locks any one: nodes reply which of them are free in one number.
 */
export const POOL_MAX = 52;

/** Separates keys in the name of a set of them: no well-formed string contains it. */
const SEPARATOR = "\udc00";

/**
 * The names of `count` resources that are alike, for calls with `any: true`: of `slots("gpu", 4)`,
 * `gpu:0` to `gpu:3`.
 *
 * @example Four jobs at a time, on four GPUs
 * ```ts
 * import { assertMatch } from "@std/assert";
 * import { createRedlock, slots } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * await redlock.using(slots("gpu", 4), { any: true }, (lock) => {
 *   assertMatch(lock.resources[0], /^gpu:[0-3]$/);
 * });
 * ```
 *
 * @param name What the names begin with, before a colon; a non-empty string.
 * @param count How many there are; an integer from 1 to 52.
 * @returns The names, with numbers from 0.
 * @throws {TypeError} If `name` is not a non-empty string, or `count` is not a number.
 * @throws {RangeError} If `count` is not an integer from 1 to 52.
 * @experimental until 1.0
 */
export function slots(name: string, count: number): string[] {
  check("name slots", "name", name, NAME);
  const rule = `must be an integer from 1 to ${POOL_MAX}`;
  const isCount = (value: number) => Number.isInteger(value) && value >= 1 && value <= POOL_MAX;
  check("name slots", "count", count, numberThat(rule, isCount));
  return Array.from({ length: count }, (_, index) => `${name}:${index}`);
}

/**
 * The resources of a call as an array.
 *
 * @param action What fails otherwise, for messages: `acquire lock`.
 * @param resource What the caller passed.
 * @param keyPrefix The prefix of each resource in its key.
 * @param any Whether the call locks any one of them.
 * @throws {TypeError} If `resource` is not a non-empty string of well-formed Unicode, or a
 * non-empty array of them without duplicates, or if it is not an array and `any` is set.
 * @throws {RangeError} If it has more than {@linkcode RESOURCES_MAX} elements, or more than
 * {@linkcode POOL_MAX} if `any` is set, or a key begins with {@linkcode RESERVED_PREFIX}.
 */
export function checkResources(
  action: string,
  resource: string | readonly string[],
  keyPrefix: string,
  any?: boolean,
): readonly string[] {
  if (any && !Array.isArray(resource)) {
    throw typeError(action, "'resource' must be an array if 'any' is true");
  }
  const resources = Array.isArray(resource) ? [...resource] : [resource];
  if (resources.length === 0 || !resources.every(isName)) {
    const rule = "must be a non-empty string or a non-empty array of them";
    const index = resources.findIndex((name) => !isName(name));
    if (index < 0 || !Array.isArray(resource)) throw formError(action, "resource", rule, resource);
    throw formError(action, "resource", rule, resource[index], ` at index ${index}`);
  }
  const max = any ? POOL_MAX : RESOURCES_MAX;
  if (resources.length > max) {
    const rule = `must have at most ${max} elements${any ? " if 'any' is true" : ""}`;
    throw rangeError(action, "resource", rule, resources.length);
  }
  for (let index = 0; index < resources.length; index++) { // an iterator takes more memory
    const name = resources[index];
    check(action, "resource", name, KEY_TEXT);
    if (isReserved(keyPrefix + name)) {
      const key = quoted(keyPrefix + name);
      throw new RangeError(
        `Cannot ${action} as no key may begin with '${RESERVED_PREFIX}': current key is ${key}`,
      );
    }
  }
  if (resources.length > 1 && new Set(resources).size < resources.length) {
    const twice = resources.find((name, index) => resources.indexOf(name) < index)!;
    throw typeError(action, `resource ${quoted(twice)} is listed twice`);
  }
  return resources;
}

/** Whether no lock may have a key. */
export function isReserved(key: string): boolean {
  return key.startsWith(RESERVED_PREFIX);
}

/** The name of a set of keys, in whatever order they are given. */
export function keysName(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** The name of a set of keys of which a call locks any one; the name of no other lock begins so. */
export function poolName(keys: readonly string[]): string {
  return SEPARATOR + keys.join(SEPARATOR);
}

/**
 * The name of the queue of calls in shared mode for a lock; the name of no other lock begins so.
 */
export function readersName(name: string): string {
  return SEPARATOR + SEPARATOR + name;
}
