/**
 * The operation that extends a lock.
 *
 * @module
 */
import { callArgs, type Operation, outcomeOf } from "./operation.ts";
import { EXTEND } from "./scripts/extend.ts";

/** Gives the keys a new TTL. */
export const EXTEND_KEYS: Operation = {
  kind: "extend",
  script: EXTEND,
  args: ({ keys, value, ttlMs, shortens }, call) =>
    callArgs(call, EXTEND, keys, value, String(ttlMs), ...shortens ? ["1"] : []),
  read(reply) {
    // mutation: missing-key-counts-as-extended
    return outcomeOf(reply, ["denied", "granted", "missing"]);
  },
};
