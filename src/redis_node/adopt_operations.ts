/**
 * The operations that replace the value of a lock: an adoption, and giving back what a failed one took.
 *
 * @module
 */
import { countOrDenial } from "./count_operations.ts";
import { callArgs, type Operation, outcomeOf, type Release } from "./operation.ts";
import { ACQUIRE_OUTCOMES } from "./queue_operations.ts";
import { ADOPT } from "./scripts/adopt.ts";

/** Gives the keys the value if they hold the one that it replaces; counts if the request asks for it. */
export const ADOPT_KEYS: Operation = {
  kind: "acquire",
  script: ADOPT,
  args: ({ keys, value, ttlMs, replaces, counterFloor }, call) => {
    const args = [value, String(ttlMs), replaces!];
    if (counterFloor !== undefined) args.push(String(counterFloor));
    return callArgs(call, ADOPT, keys, ...args);
  },
  read: (reply) => reply === -1 ? "missing" : countOrDenial(reply),
};

/** Gives the keys that hold the value back the one that it replaced, with the TTL that they have. */
export const GIVE_BACK_KEYS: Operation<Release> = {
  kind: "release",
  script: ADOPT,
  args: ({ keys, value, replaces }, call) => callArgs(call, ADOPT, keys, replaces!, "1", value),
  read: (reply) => reply === -1 ? "denied" : outcomeOf(reply, ACQUIRE_OUTCOMES),
};
