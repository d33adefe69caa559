/**
 * A node on a cluster, through ioredis.
 *
 * @module
 */

import { commandNode, type LockNode } from "@hasp/redlock/nodes";
import { Cluster, type ClusterNode, Command, type Redis } from "ioredis";

/**
 * Connects to a cluster, and makes one node of it: `new Redlock([node], { keyPrefix: "{locks}:"
 * })`. Close the node first, then the client by `disconnect()`.
 *
 * @param startup Some servers of the cluster.
 * @param tag The hash tag of all locks.
 */
export async function clusterNode(
  startup: ClusterNode[],
  tag = "{locks}",
): Promise<{ node: LockNode; cluster: Cluster }> {
  const cluster = new Cluster(startup, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRedirections: 1,
    redisOptions: {
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      socketTimeout: 2_000, // a server that hangs gets a new connection
    },
  });
  cluster.on("error", () => {}); // the node's votes report it
  // A slot moves key by key, and a script at its new server would not see those that are still at
  // the old one. Without ASKING, the new one refuses the command until it has the whole slot.
  cluster.on("+node", (server: Redis) => server.asking = () => Promise.resolve("OK" as const));
  await cluster.connect();
  const slot = new Command("GET", [tag]).getSlot()!;
  /** The server of the tag, unless it is down; scripts see only those who subscribe there. */
  const serverOfTag = () =>
    cluster.nodes("master").find(({ options: { host, port } }) =>
      cluster.slots[slot]?.[0] === `${host}:${port}`
    );
  const node = commandNode({
    name: "cluster",
    send: ([name, ...args]) => {
      const hasKey = new Command(name, args).getSlot() !== null;
      return (hasKey ? cluster : serverOfTag() ?? cluster).call(name, args);
    },
    resends: true, // after a redirection
    subscribe: async (channel, { onMessage, onLost }) => {
      const subscriber = serverOfTag()?.duplicate({ autoResubscribe: false });
      if (!subscriber) throw new Error("The server of the tag is down");
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
  return { node, cluster };
}
