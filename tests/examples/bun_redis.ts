/**
 * A node on Bun's own client.
 *
 * @module
 */

import { commandNode, type LockNode } from "@hasp/redlock/nodes";
import { RedisClient } from "bun";

/**
 * Connects to a server, and makes a node of it. Close the node first, then the client by `close()`.
 */
export async function bunRedisNode(url: string): Promise<{ node: LockNode; close(): void }> {
  // While the connection is down, commands fail at once. Bun's way to reconnect ends with the first
  // time-out.
  const options = { enableOfflineQueue: false, autoReconnect: false, connectionTimeout: 2_000 };
  const redis = new RedisClient(url, options);
  const connect = () => redis.connect().catch(() => {}); // the node's votes report it
  let timer: ReturnType<typeof setTimeout> | undefined;
  redis.onclose = () => timer = setTimeout(connect, 100); // also if connecting failed
  await connect();
  const send = ([name, ...args]: string[], signal: AbortSignal) => {
    signal.onabort = () => redis.close(); // a server that hangs gets a new connection
    return redis.send(name, args);
  };
  const node = commandNode({
    name: new URL(url).host,
    send,
    pipeline: (commands, signal) =>
      Promise.all(commands.map((args) => send(args, signal).catch((error) => error))),
    resends: false, // it never sends a command again
    subscribe: async (channel, { onMessage, onLost }) => {
      const subscriber = new RedisClient(url, options); // once subscribed, it can send nothing else
      subscriber.onclose = onLost; // the node subscribes again
      await subscriber.connect();
      await subscriber.subscribe(channel, onMessage).catch((error) => {
        subscriber.close();
        throw error;
      });
      return () => subscriber.close();
    },
  });
  const close = () => {
    redis.onclose = null;
    clearTimeout(timer);
    redis.close();
  };
  return { node, close };
}
