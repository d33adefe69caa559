/**
 * Nodes on clients that you already use: ioredis, node-redis, Bun's Redis client, Valkey GLIDE, or
 * Redis over HTTP.
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
export type {
  /** Receives what a subscription brings. */
  ChannelListener,
  /** Subscribes to a channel. */
  SubscribeChannel,
} from "../redis_node/command_sender.ts";
export { commandNode } from "./command_node.ts";
export type { CommandNodeOptions } from "./command_node_options.ts";
export type {
  /** A node's answer. */
  Grant,
  /** What a node has under a key. */
  KeyState,
  /** One node: the seam between the lock and a store. */
  LockNode,
  /** What a node is asked. */
  LockRequest,
} from "../quorum/lock_node.ts";
export type {
  /** What a node reports about itself. */
  NodeDiagnosis,
} from "../quorum/node_diagnosis.ts";
