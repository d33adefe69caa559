/**
 * Five nodes to vote: real Redis servers where the machine has one that runs, else nodes in memory. Either way each
 * can be killed and stopped.
 *
 * @module
 */

import { findRedisServer } from "../find_redis.ts";
import { startNodes as startMemoryNodes } from "../../src/testing/mod.ts";
import { startServers } from "../../tests/support/servers.ts";

/** Which nodes are wanted: whatever is there, real servers even if one must be fetched, or nodes in memory. */
export type NodeChoice = "any" | "redis" | "memory";

/** A node that bad things can be done to. */
export interface DemoNode {
  readonly url: string;
  /** Ends it at once. */
  kill(): Promise<void>;
  /** Stops it, its port left open. */
  pause(): Promise<void>;
  /** Lets it go on. */
  resume(): void;
  /** Starts it again on the same port, without its keys. */
  restart(): Promise<void>;
}

/** All nodes, and how to call them. */
export interface DemoNodes extends AsyncDisposable {
  readonly nodes: readonly DemoNode[];
  readonly description: string;
  /** Why they are not real servers, where that was not asked for. */
  readonly excuse?: string;
}

/** Starts `count` nodes. */
export async function startNodes(choice: NodeChoice, count: number): Promise<DemoNodes> {
  if (choice === "memory") return await startInMemory(count);
  if (choice === "redis") return await startRedis(await findRedisServer(), count);
  try {
    // Fetching a server may take longer than the whole demo.
    return await startRedis(await findRedisServer({ fetch: false }), count);
  } catch (error) {
    const [excuse] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { ...await startInMemory(count), excuse };
  }
}

async function startRedis(executable: string, count: number): Promise<DemoNodes> {
  const { stdout } = await new Deno.Command(executable, { args: ["--version"] }).output();
  const version = /v=([\d.]+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? "";
  const servers = await startServers(count);
  return {
    nodes: servers,
    description: `${count} processes of redis-server ${version}`,
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
}

async function startInMemory(count: number): Promise<DemoNodes> {
  const started = await startMemoryNodes(count);
  const nodes = started.map((node): DemoNode => ({
    url: node.address,
    kill: () => node.crash(),
    pause: () => Promise.resolve(node.hang()),
    resume: () => node.resume(),
    restart: () => node.restart(),
  }));
  return {
    nodes,
    description: `${count} in-memory servers of src/testing`,
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  };
}
