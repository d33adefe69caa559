/**
 * This library on the clients of others, by the recipes in `tests/examples`, and over HTTP.
 *
 * @module
 */

import process from "node:process";
import { type OurRedlock, Ours } from "./ours.ts";

const UPSTASH = new URL("../../../src/upstash/mod.ts", import.meta.url).href;

type Recipe = (url: string) => Promise<{ node: unknown; close(): unknown }>;

/** What the recipes' files export. */
interface Exported {
  // deno-lint-ignore no-explicit-any -- each client has a type of its own
  [name: string]: (...args: any[]) => any;
}

/** The recipes, by the names of their files. */
const RECIPES: Record<string, (exported: Exported) => Recipe> = {
  ioredis: ({ ioredisNode }) => async (url) => {
    const { node, redis } = await ioredisNode!(url);
    return { node, close: () => redis.disconnect() };
  },
  node_redis: ({ nodeRedisNode }) => async (url) => {
    const { node, redis } = await nodeRedisNode!(url);
    return { node, close: () => redis.destroy() };
  },
  bun_redis: ({ bunRedisNode }) => bunRedisNode!,
  upstash: ({ upstashNode }) => (url) => {
    // A variable says where Redis speaks HTTP.
    const [bridgeUrl, token] = JSON.parse(process.env.BENCH_BRIDGES!)[url];
    const node = upstashNode!({ url: bridgeUrl, token });
    return Promise.resolve({ node, close: () => {} });
  },
};

/** {@linkcode Contender} of `mod.ts` on another client. */
export class OnClient extends Ours {
  readonly #name: string;
  #close: (() => unknown)[] = [];

  constructor(name: string) {
    super();
    this.#name = name;
  }

  protected override async create(urls: readonly string[]): Promise<OurRedlock> {
    // Node and Bun find a recipe and what it imports in the folder of packages.
    const folder = "Deno" in globalThis
      ? new URL("../../examples", import.meta.url)
      : process.env.BENCH_PACKAGES;
    const file = this.#name === "upstash" ? UPSTASH : `${folder}/${this.#name}.ts`;
    const exported: Exported = await import(file);
    const recipe = RECIPES[this.#name]!(exported);
    const nodes = await Promise.all(urls.map(recipe));
    this.#close = nodes.map(({ close }) => close);
    const { Redlock } = await import("../../../mod.ts");
    return new Redlock(nodes.map(({ node }) => node as never));
  }

  protected override copy(): OnClient {
    return new OnClient(this.#name);
  }

  override async close(): Promise<void> {
    await super.close();
    for (const close of this.#close) close();
  }
}
