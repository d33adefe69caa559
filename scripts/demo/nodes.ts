/**
 * Five nodes to vote: real Redis servers where the machine has one, else nodes in memory. Either way each can be
 * killed and stopped.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
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
}

/** Where `scripts/find_redis.ts` leaves a server that it fetched. */
const FETCHED = fileURLToPath(new URL("../../.cache/redis/run-redis-server", import.meta.url));
const FOLDERS = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Starts `count` nodes. */
export async function startNodes(choice: NodeChoice, count: number): Promise<DemoNodes> {
  const redis = choice === "memory" || choice === "any" && !hasRedisServer()
    ? undefined
    : await findRedisServer();
  return redis === undefined ? await startInMemory(count) : await startRedis(redis, count);
}

/** Whether a server can be had without fetching one, which may take longer than the whole demo. */
function hasRedisServer(): boolean {
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).concat(FOLDERS);
  const names = ["redis-server", "valkey-server"];
  return Boolean(Deno.env.get("REDIS_SERVER")) || existsSync(FETCHED) ||
    folders.some((folder) => folder && names.some((name) => existsSync(join(folder, name))));
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
