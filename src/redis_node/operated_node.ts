/**
 * What operators ask of a node, apart from {@linkcode RedisNode}, so that programs which only lock
 * do not carry it.
 *
 * @module
 */
import type { QuorumNode } from "../quorum/quorum_node.ts";
import { RedisDiagnostics } from "./diagnostics.ts";
import { RedisNode } from "./redis_node.ts";
import { scanKeys } from "./scan_keys.ts";

/** A node as operators ask it. */
export type OperatedNode = Pick<
  QuorumNode,
  "name" | "readyAtMs" | "inspect" | "keys" | "diagnose"
>;

/** Adds to a node on Redis what operators ask of it; any other node has that itself. */
export function operated(node: QuorumNode): OperatedNode {
  if (!(node instanceof RedisNode)) return node;
  const { name, parts: { connection, server } } = node;
  return {
    name,
    get readyAtMs() {
      return node.readyAtMs;
    },
    inspect: (key) => node.inspect(key),
    keys: (prefix) => scanKeys(connection, name, prefix),
    diagnose(timeoutMs, key) {
      node.diagnostics ??= new RedisDiagnostics(connection, server);
      return node.diagnostics.diagnose(timeoutMs, key);
    },
  };
}
