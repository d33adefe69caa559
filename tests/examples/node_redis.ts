/**
 * A node on node-redis 5.
 *
 * @module
 */

import { commandNode } from "@hasp/redlock/nodes";
import { once } from "node:events";
import { createClient } from "redis";

/** Makes a node of a server. Close the node first, then the client by `destroy()`. */
export async function nodeRedisNode(url: string, RESP: 2 | 3 = 2) {
  const socket = {
    socketTimeout: 2_000, // a server that hangs gets a new connection
    reconnectStrategy: (attempts: number) => Math.min(50 * 2 ** attempts, 2_000),
  };
  const redis = createClient({
    url,
    RESP,
    socket,
    pingInterval: 1_000, // else `socketTimeout` closes idle connections too
    disableOfflineQueue: true, // while the connection is down, commands fail at once
  });
  redis.on("error", () => {}); // the node's votes report it
  redis.connect().catch(() => {});
  await once(redis, "ready").catch(() => {}); // it goes on trying
  const send = (args: string[]) => redis.sendCommand(args);
  const node = commandNode({
    name: new URL(url).host,
    send,
    pipeline: (commands) => Promise.all(commands.map((args) => send(args).catch((error) => error))),
    resends: false, // it never sends a command again
    subscribe: async (channel, { onMessage, onLost }) => {
      const subscriber = redis.duplicate({ socket: { ...socket, reconnectStrategy: false } });
      subscriber.on("error", onLost); // the node subscribes again
      await subscriber.connect();
      const end = () => subscriber.isOpen && subscriber.destroy();
      await subscriber.subscribe(channel, onMessage).catch((error) => {
        end();
        throw error;
      });
      return end;
    },
  });
  return { node, redis };
}
