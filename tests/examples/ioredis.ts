/**
 * A node on ioredis 5.
 *
 * @module
 */

import { commandNode, type LockNode } from "@hasp/redlock/nodes";
import { Redis } from "ioredis";

/** Makes a node of a server. Close the node first, then the client by `disconnect()`. */
export async function ioredisNode(url: string): Promise<{ node: LockNode; redis: Redis }> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false, // while the connection is down, commands fail at once
    maxRetriesPerRequest: 0, // a command without a reply fails; it is not sent again
    autoResendUnfulfilledCommands: false,
    socketTimeout: 2_000, // a server that hangs gets a new connection
    retryStrategy: (attempts) => Math.min(50 * 2 ** attempts, 2_000),
  });
  redis.on("error", () => {}); // the node's votes report it
  await redis.connect().catch(() => {}); // it goes on trying
  const node = commandNode({
    name: `${redis.options.host}:${redis.options.port}`,
    send: ([name, ...args]) => redis.call(name, args),
    pipeline: async (commands) => {
      const replies = await redis.pipeline(commands.map((command) => ["call", ...command])).exec();
      return replies!.map(([error, reply]) => error ?? reply);
    },
    resends: false, // by the options above
    subscribe: async (channel, { onMessage, onLost }) => {
      const subscriber = redis.duplicate({ autoResubscribe: false, retryStrategy: () => null });
      subscriber.on("error", () => {});
      subscriber.on("close", onLost); // the node subscribes again
      subscriber.on("message", (_channel: string, message: string) => onMessage(message));
      try {
        await subscriber.connect();
        await subscriber.subscribe(channel);
      } catch (error) {
        subscriber.disconnect();
        throw error;
      }
      return () => subscriber.disconnect();
    },
  });
  return { node, redis };
}
