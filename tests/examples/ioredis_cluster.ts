/**
 * A node on a cluster, through ioredis.
 *
 * @module
 */

import { commandNode, type LockNode } from "@hasp/redlock/nodes";
import { Cluster, type ClusterNode } from "ioredis";

/**
 * Connects to a cluster, and makes one node of it: `new Redlock([node], { keyPrefix: "{locks}:"
 * })`. Close the node first, then the client by `disconnect()`.
 */
export async function clusterNode(
  startup: ClusterNode[],
): Promise<{ node: LockNode; cluster: Cluster }> {
  const cluster = new Cluster(startup, {
    lazyConnect: true,
    enableOfflineQueue: false,
    redisOptions: { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
  });
  cluster.on("error", () => {}); // the node's votes report it
  await cluster.connect();
  const node = commandNode({
    name: "cluster",
    send: ([name, ...args]) => cluster.call(name, args),
    resends: true, // after a redirection
    subscribe: async (channel, { onMessage, onLost }) => {
      const subscriber = cluster.duplicate();
      subscriber.on("error", () => {});
      subscriber.on("end", onLost);
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
  return { node, cluster };
}
