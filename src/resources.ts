/**
 * Which resources can be locked.
 *
 * @module
 */
import { quoted } from "./errors.ts";
import { checkKeyText, rangeError } from "./validate.ts";

/** Most resources of one lock: each is a key of one script, and a script blocks its node while it runs. */
export const RESOURCES_MAX = 1_000;
/**
 * What the names of all keys and channels begin with that the library adds to a database: queues, counters, the creation
 * marker. No lock's key begins with it, so none is overwritten.
 */
const RESERVED_PREFIX = "hasp:";

/**
 * The resources of a call as an array.
 *
 * @param attempt The call that fails otherwise, for messages: `acquire lock`.
 * @param resource What the caller passed.
 * @param keyPrefix The prefix of each resource in its key.
 * @throws {TypeError} If `resource` is not a non-empty string of well-formed Unicode, or a non-empty array of them
 *   without duplicates.
 * @throws {RangeError} If it has more than {@linkcode RESOURCES_MAX} elements, or a key begins with
 *   {@linkcode RESERVED_PREFIX}.
 */
export function checkResources(
  attempt: string,
  resource: string | readonly string[],
  keyPrefix: string,
): readonly string[] {
  const resources = Array.isArray(resource) ? [...resource] : [resource];
  if (resources.length === 0) {
    throw new TypeError(`Cannot ${attempt} as 'resource' must not be an empty array`);
  }
  if (resources.length > RESOURCES_MAX) {
    const rule = `must have at most ${RESOURCES_MAX} elements`;
    throw rangeError(attempt, "resource", rule, resources.length);
  }
  for (const name of resources) {
    if (typeof name !== "string" || name === "") {
      throw new TypeError(
        `Cannot ${attempt} as 'resource' must be a non-empty string or an array of non-empty strings`,
      );
    }
    checkKeyText(attempt, "resource", name);
    if (isReserved(keyPrefix, name)) {
      const key = quoted(keyPrefix + name);
      throw new RangeError(
        `Cannot ${attempt} as no key may begin with '${RESERVED_PREFIX}': current key is ${key}`,
      );
    }
  }
  if (resources.length > 1 && new Set(resources).size < resources.length) {
    const twice = resources.find((name, index) => resources.indexOf(name) < index)!;
    throw new TypeError(`Cannot ${attempt} as resource ${quoted(twice)} is listed twice`);
  }
  return resources;
}

/** Whether a key begins with {@linkcode RESERVED_PREFIX}; joins its parts only if the prefix does not decide. */
export function isReserved(keyPrefix: string, name: string): boolean {
  const start = keyPrefix.length < RESERVED_PREFIX.length ? keyPrefix + name : keyPrefix;
  return start.startsWith(RESERVED_PREFIX);
}
