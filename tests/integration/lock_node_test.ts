import { type LockNodePart, testLockNode } from "../../src/testing/mod.ts";
import {
  memoryStore,
  onStore,
  ownClientNode,
  realStore,
  redisNode,
} from "../support/nodes_to_test.ts";
import { shareServers } from "../support/shared_servers.ts";
import { testQueue } from "./queue_cases.ts";

const store = realStore(shareServers(1));

const named = (node: string) => (name: string, run: () => Promise<void>) => {
  Deno.test(`${node}: ${name}`, run);
};

/** Parts that need no second run where the scripts or the code of the node are those of another. */
const TESTED_ELSEWHERE: readonly LockNodePart[] = ["fencing", "adopting", "sharing", "race"];

testLockNode(() => onStore(store, redisNode), { test: named("RedisNode on redis-server") });
testQueue(() => onStore(store, redisNode), named("RedisNode on redis-server"));

// Other tests compare its replies with those of redis-server, byte for byte.
testLockNode(() => onStore(memoryStore, redisNode), {
  test: named("RedisNode on MemoryRedis"),
  without: [...TESTED_ELSEWHERE, "hang"],
});

testLockNode(() => onStore(store, ownClientNode), {
  test: named("commandNode one command at a time"),
});

testLockNode(
  () => onStore(store, (url) => ownClientNode(url, { pipelined: true, resends: false })),
  // the recipes of ioredis and node-redis hang with pipelines, too
  { test: named("commandNode with pipelines"), without: [...TESTED_ELSEWHERE, "hang"] },
);
