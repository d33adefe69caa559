import { testLockNode } from "../../src/testing/mod.ts";
import {
  memoryStore,
  onStore,
  ownClientNode,
  realStore,
  redisNode,
} from "../support/nodes_to_test.ts";

const named = (node: string) => (name: string, run: () => Promise<void>) => {
  Deno.test(`${node}: ${name}`, run);
};

testLockNode(() => onStore(realStore, redisNode), { test: named("RedisNode on redis-server") });

testLockNode(() => onStore(memoryStore, redisNode), { test: named("RedisNode on MemoryRedis") });

testLockNode(() => onStore(realStore, ownClientNode), {
  test: named("commandNode one command at a time"),
  without: ["queue"],
});

testLockNode(
  () => onStore(realStore, (url) => ownClientNode(url, { pipelined: true, resends: false })),
  { test: named("commandNode with pipelines"), without: ["queue"] },
);
