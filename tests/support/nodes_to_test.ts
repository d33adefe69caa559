/** Nodes for the suite of `testLockNode`, each with a store of its own that can be made to hang. */
import { commandNode, type CommandNodeOptions } from "../../src/nodes/mod.ts";
import { publishedNode } from "../../src/nodes/published_node.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import { resolveClientOptions } from "../../src/redis/client_options.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { type NodeToTest, startNodes } from "../../src/testing/mod.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import type { SharedServers } from "./shared_servers.ts";

/** A server that can be made to hang. */
export interface Store {
  readonly url: string;
  hang(): unknown;
  resume(): unknown;
  close(): Promise<void>;
}

/** Starts a server in memory. */
export async function memoryStore(): Promise<Store> {
  const nodes = await startNodes(1);
  const node = nodes.node(0);
  return {
    url: nodes.addresses[0],
    hang: () => node.hang(),
    resume: () => node.resume(),
    close: () => nodes.close(),
  };
}

/** Lends a real server, which is empty. */
export function realStore(shared: SharedServers): () => Promise<Store> {
  return () => {
    const servers = shared.lend(1);
    return Promise.resolve({
      url: servers.urls[0],
      hang: () => servers[0].pause(),
      resume: () => servers[0].resume(),
      close: async () => await servers[Symbol.asyncDispose](),
    });
  };
}

/** The node of `createRedlock`. */
export function redisNode(url: string): NodeToTest {
  const address = parseAddress(url);
  const options = resolveClientOptions({}, [address]);
  const wheel = new TimerWheel();
  const node = publishedNode(new RedisNode(redisServer(address, options, wheel)));
  return { node, close: () => wheel.close() };
}

/** A {@linkcode commandNode} on our own client. */
export async function ownClientNode(
  url: string,
  options: Partial<CommandNodeOptions> & { pipelined?: boolean } = {},
): Promise<NodeToTest> {
  const { pipelined = false, ...rest } = options;
  const client = await connect(url);
  const node = commandNode({
    name: client.address,
    send: (args, signal) => client.send(args, { signal }),
    ...(pipelined ? { pipeline: pipelineOf(client) } : {}),
    ...rest,
  });
  return { node, close: () => client.close() };
}

function pipelineOf(client: RedisClient): CommandNodeOptions["pipeline"] {
  return async (commands, signal) => {
    const replies = commands.map((args) => client.send(args, { signal }));
    const settled = await Promise.allSettled(replies);
    return settled.map((it) => {
      if (it.status === "fulfilled") return it.value;
      if (it.reason.name === "ReplyError") return it.reason;
      throw it.reason;
    });
  };
}

/** Puts a store behind a node. */
export async function onStore(
  start: () => Promise<Store>,
  make: (url: string) => NodeToTest | Promise<NodeToTest>,
): Promise<NodeToTest> {
  const store = await start();
  const made = await make(store.url);
  return {
    ...store,
    node: made.node,
    peer: () => make(store.url),
    async close() {
      await made.close?.();
      await store.close();
    },
  };
}
