/**
 * What the modules of Lua scripts export: every script of the library, for tests that go through
 * all of them.
 */
export * from "../../src/redis_node/scripts/acquire.ts";
export * from "../../src/redis_node/scripts/adopt.ts";
export * from "../../src/redis_node/scripts/extend.ts";
export * from "../../src/redis_node/scripts/fencing.ts";
export * from "../../src/redis_node/scripts/pool.ts";
export * from "../../src/redis_node/scripts/queue.ts";
export * from "../../src/redis_node/scripts/readers.ts";
export * from "../../src/redis_node/scripts/release.ts";
