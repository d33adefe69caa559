/**
 * A {@linkcode LockNode} on any Redis client: made of one function that sends a command.
 *
 * @module
 */
import type { LockNode } from "../quorum/lock_node.ts";
import { RedisNode } from "../redis_node/redis_node.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { toError } from "../to_error.ts";
import { type CommandNodeOptions, resolveNodeOptions } from "./command_node_options.ts";
import { OrderedSender } from "./ordered_sender.ts";
import { publishedNode } from "./published_node.ts";
import { replyErrorOf } from "./read_reply.ts";

/**
 * Makes a node of any client for one Redis or Valkey server: with fencing tokens, inspection and
 * health check, and with notifications if there is `subscribe`.
 *
 * The client may reorder commands, lose them, or repeat them: the node sends the commands about one
 * key one after another, and undoes again what may arrive late. Closing the node does not close the
 * client.
 *
 * @example Nodes on another client
 * ```ts
 * import { assert } from "@std/assert";
 * import { Redlock } from "@hasp/redlock";
 * import { commandNode } from "@hasp/redlock/nodes";
 * import { connect } from "@hasp/redlock/redis"; // in place of any client
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using servers = await startNodes(3);
 * const clients = await Promise.all(servers.addresses.map((address) => connect(address)));
 * {
 *   await using redlock = new Redlock(clients.map((client) =>
 *     commandNode({
 *       name: client.address,
 *       send: (args, signal) => client.send(args, { signal }),
 *       resends: false,
 *     })
 *   ));
 *   await using lock = await redlock.acquire("invoice:42");
 *   assert(lock.held);
 *   assert(await redlock.tryAcquire("invoice:42") === undefined);
 * }
 * for (const client of clients) await client.close();
 * ```
 *
 * @param options The client, as functions, and what is known about it.
 * @returns The node, for `new Redlock(nodes)`.
 * @throws {TypeError} If an option is missing, unknown or of the wrong type, or `name` is empty.
 * @throws {RangeError} If `timeoutMs` is out of range.
 */
export function commandNode(options: CommandNodeOptions): LockNode {
  const { subscribe, resends, ...client } = resolveNodeOptions(options);
  const wheel = new TimerWheel();
  const node = new RedisNode({
    name: client.name,
    wheel,
    resends,
    thirdParty: true,
    newSender: (events = {}) => new OrderedSender(client, wheel, events),
    subscribe: subscribe && (async (...args) => {
      try {
        return await subscribe(...args);
      } catch (thrown) {
        throw replyErrorOf(thrown) ?? toError(thrown);
      }
    }),
    close: () => wheel.close(),
  });
  return publishedNode(node);
}
