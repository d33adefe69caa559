import { testLockNode } from "../../src/testing/mod.ts";
import {
  memoryStore,
  onStore,
  ownClientNode,
  realStore,
  redisNode,
} from "../support/nodes_to_test.ts";
import { testQueue } from "./queue_cases.ts";

const named = (node: string) => (name: string, run: () => Promise<void>) => {
  Deno.test(`${node}: ${name}`, run);
};

for (
  const [servers, store] of Object.entries({ "redis-server": realStore, MemoryRedis: memoryStore })
) {
  const test = named(`RedisNode on ${servers}`);
  testLockNode(() => onStore(store, redisNode), { test });
  testQueue(() => onStore(store, redisNode), test);
}

testLockNode(() => onStore(realStore, ownClientNode), {
  test: named("commandNode one command at a time"),
});

testLockNode(
  () => onStore(realStore, (url) => ownClientNode(url, { pipelined: true, resends: false })),
  { test: named("commandNode with pipelines") },
);
