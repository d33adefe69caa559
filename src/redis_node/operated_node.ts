/**
 * What operators ask of a node, apart from {@linkcode RedisNode}, so that programs which only lock
 * do not carry it.
 *
 * @module
 */
import type { QuorumNode } from "../quorum/quorum_node.ts";
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { textReply } from "../redis/reply.ts";
import { type CommandSender, repliesTo } from "./command_sender.ts";
import { diagnose } from "./diagnostics.ts";
import { RedisNode } from "./redis_node.ts";

/**
 * How many keys a server looks at in one step: a connection takes no longer reply than 1 MiB, so
 * names may have 5 kB.
 */
const STEP_KEYS = "200";
/** What a pattern would not take literally. */
const SPECIAL = /[*?[\]\\^-]/gu;

/** A node as operators ask it. */
export type OperatedNode = Pick<
  QuorumNode,
  "name" | "readyAtMs" | "inspect" | "keys" | "diagnose"
>;

/** Adds to a node on Redis what operators ask of it; any other node has that itself. */
export function operated(node: QuorumNode): OperatedNode {
  if (!(node instanceof RedisNode)) return node;
  const { name, connection } = node;
  return {
    name,
    get readyAtMs() {
      return node.readyAtMs;
    },
    inspect: (key) => node.inspect(key),
    keys: (prefix) => scanKeys(connection, name, prefix),
    diagnose: (timeoutMs, key) => diagnose(node, timeoutMs, key),
  };
}

/**
 * Lists the keys that begin with a prefix and hold a string, a step at a time. A key that is there
 * from the first step to the last is listed, perhaps more than once.
 *
 * @param connection The connection to the server.
 * @param name The node, for messages.
 * @param prefix What the keys begin with.
 * @throws {RedisError} If the server cannot be asked, or refuses to answer.
 */
async function* scanKeys(
  connection: CommandSender,
  name: string,
  prefix: string,
): AsyncGenerator<readonly string[], void> {
  await connection.expectPlainKeys?.();
  const pattern = `${prefix.replaceAll(SPECIAL, "\\$&")}*`;
  let cursor: unknown = "0";
  do {
    const words = ["SCAN", String(cursor), "MATCH", pattern, "COUNT", STEP_KEYS, "TYPE", "string"];
    const [reply] = await repliesTo(connection, [words]);
    if (reply instanceof ReplyError) throw reply;
    const [next, keys] = Array.isArray(reply) ? textReply(reply) as unknown[] : [];
    if (!Array.isArray(keys)) {
      throw new ProtocolError(`Cannot list keys as ${name} sent an unexpected reply`);
    }
    yield keys.map(String);
    cursor = next;
  } while (String(cursor) !== "0");
}
