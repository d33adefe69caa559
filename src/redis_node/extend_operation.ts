/**
 * The operation that extends a lock.
 *
 * @module
 */
import { encodeCall, encodeScriptHead, type Operation, outcomeOf, singleKey } from "./operation.ts";
import { EXTEND } from "./scripts/extend.ts";

const EXTEND_HEAD = /* @__PURE__ */ encodeScriptHead(EXTEND, 3);

/** Gives the keys a new TTL. */
export const EXTEND_KEYS: Operation = {
  code: 10,
  kind: "extend",
  script: EXTEND,
  encode({ keys, value, ttlMs }, call) {
    const ttl = String(ttlMs);
    return keys.length > 1 || call === "EVAL"
      ? encodeCall(call, EXTEND, keys, [value, ttl])
      : singleKey(keys[0], EXTEND_HEAD).text(value).text(ttl).end();
  },
  read(reply) {
    // mutation: missing-key-counts-as-extended
    return outcomeOf(reply, ["denied", "granted", "missing"]);
  },
};
