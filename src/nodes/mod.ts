/**
 * Nodes on clients that you have already: ioredis, node-redis, Bun's own, or Redis over HTTP.
 *
 * @example A node on a function that sends a command
 * ```ts
 * import { assert } from "@std/assert";
 * import { Redlock } from "@hasp/redlock";
 * import { commandNode } from "@hasp/redlock/nodes";
 * import { connect } from "@hasp/redlock/redis"; // in place of any client
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using servers = await startNodes(1);
 * await using client = await connect(servers.addresses[0]);
 * const node = commandNode({ name: "a", send: (args) => client.send(args), resends: false });
 * await using redlock = new Redlock([node]);
 * assert(await redlock.using("invoice:42", () => true));
 * ```
 *
 * @module
 */
export type { ChannelListener, SubscribeChannel } from "./channel_subscription.ts";
export { commandNode, type CommandNodeOptions } from "./command_node.ts";
export type * from "../quorum/lock_node.ts";
export type * from "../quorum/node_diagnosis.ts";
export type * from "../quorum/queue_ticket.ts";
