/**
 * Holds the servers in memory to a real one with the scripts of other lock libraries: the same
 * bytes back for the same random calls. Those of redis-semaphore come from the package; the others
 * are what libraries in other languages send.
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Redis } from "ioredis";
import * as semaphores from "redis-semaphore";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { MemoryRedis, startNodes } from "../../src/testing/mod.ts";
import { PEER_SCRIPTS } from "./random_commands.ts";
import { rawReplies } from "../support/raw_replies.ts";
import { testAsRedis70 as test } from "../support/as_redis_70.ts";
import { startServer } from "../support/servers.ts";

const SEED = 20_120;
const SEQUENCES = 400;

/** What locks of redis-semaphore have in common. */
interface SemaphoreLock {
  tryAcquire(): Promise<boolean>;
  release(): Promise<void>;
  _refresh(): Promise<boolean>;
}
type SemaphoreConstructor = new (...args: unknown[]) => SemaphoreLock;
const { Mutex, Semaphore, MultiSemaphore } = semaphores as unknown as Record<
  string,
  SemaphoreConstructor
>;
/** No timer extends a lock, and no call waits. */
const UNEXTENDED = { refreshInterval: 0, lockTimeout: 10_000, acquireAttemptsLimit: 1 };

/** The scripts that a package sends: its locks are run by a client that notes them. */
async function semaphoreScripts(): Promise<string[]> {
  const sources = new Set<string>();
  const client = Object.assign(Object.create(Redis.prototype), {
    set: () => Promise.resolve("OK"),
    zrem: () => Promise.resolve(1),
    evalsha: () => Promise.reject(new Error("NOSCRIPT")),
    eval(source: string) {
      sources.add(source);
      return Promise.resolve(1);
    },
  });
  for (
    const lock of [
      new Mutex(client, "key", UNEXTENDED),
      new Semaphore(client, "key", 2, UNEXTENDED),
      new MultiSemaphore(client, "key", 3, 2, UNEXTENDED),
    ]
  ) {
    await lock.tryAcquire();
    await lock._refresh();
    await lock.release();
  }
  return [...sources];
}

/**
 * The forms in which libraries of other languages compare and delete, extend, and take several
 * keys.
 */
const COMMON = [
  `if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("DEL", KEYS[1])
end
return 0`,
  `
    if redis.call('get', KEYS[1]) == ARGV[1] then
      return redis.call('pexpire', KEYS[1], ARGV[2])
    else
      return 0
    end
  `,
  `local held = redis.call('get', KEYS[1])
if not held or held ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if not left then left = 0 end
if left < 0 then return 0 end
redis.call('pexpire', KEYS[1], left + ARGV[2])
return 1`,
  `local left = redis.call("PTTL", KEYS[1])
if left == -2 then return {-1, -2} end
if left < tonumber(ARGV[3] or 0) then return {0, left} end
if redis.call("GET", KEYS[1]) == ARGV[1] then
  redis.call("PEXPIRE", KEYS[1], tonumber(ARGV[2]))
  return {1, left}
end
return {-1, left}`,
  `for i = 1, #KEYS do
  if redis.call("EXISTS", KEYS[i]) == 1 then return {0, i, KEYS[i]} end
end
local ttl = tonumber(ARGV[#ARGV])
for i = 1, #KEYS do redis.call("SET", KEYS[i], ARGV[i], "PX", ttl) end
return {1, #KEYS}`,
  `redis.pcall("SELECT", tonumber(ARGV[1]))
for _, key in ipairs(KEYS) do
  if redis.call("exists", key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end
return #KEYS`,
  `local value = redis.call("GET", KEYS[1])
if not value then return nil end
return {value, redis.call("PTTL", KEYS[1])}`,
];

const word = (text: string) => fc.constantFrom(...text.split(" "));
const key = word("a a b z");
const arg = word("v w 60000 90000 1700000000000 1699999995000 x 0 -1");
/** What loops over permits gets few of them, because servers have no limit. */
const permits = fc.tuple(
  ...[word("1 2 v"), word("1 2 x"), word("v w"), word("60000 90000"), word("1700000000000 5000")],
);

/** Lives are equal to a few milliseconds. */
function comparable(replies: string): string {
  return replies.replace(
    /^:(\d{4,13})\r$/gmu,
    (_, digits) => `:${Math.round(Number(digits) / 5_000)}\r`,
  );
}

test("MemoryRedis runs the scripts of other lock libraries byte for byte as redis-server does", async () => {
  await using server = await startServer({ rights: ["&*", "+@all"] });
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const sources = [
    ...PEER_SCRIPTS.map(({ source }) => source),
    ...await semaphoreScripts(),
    ...COMMON,
  ];
  assertEquals(sources.length, 6 + 7 + 7);
  const call = fc.tuple(
    fc.constantFrom(...sources),
    fc.array(key, { minLength: 1, maxLength: 2 }),
    fc.array(arg, { maxLength: 5 }),
    permits,
  ).map(([source, keys, args, several]) => {
    const given = source.includes("permits") ? several : args;
    return ["EVAL", source, String(keys.length), ...keys, ...given];
  });
  const plain = fc.oneof(
    fc.tuple(fc.constant("SET"), key, word("v w 1")),
    fc.tuple(fc.constant("DEL"), key),
    fc.tuple(fc.constant("ZADD"), fc.constant("z"), word("1 1699999995000"), word("v w v_0")),
  );
  const commands = fc.array(fc.oneof({ weight: 4, arbitrary: call }, plain), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(commands, async (drawn) => {
      const all = [["FLUSHALL"], ...drawn as string[][], ["ZRANGE", "z", "0", "-1", "WITHSCORES"]];
      const bytes = joinCommands(all.map((words) => encodeCommand(words)));
      const actual = new TextDecoder().decode(new MemoryRedis().session().push(bytes));
      assertEquals(comparable(actual), comparable(await rawReplies(connection, all)));
    }),
    { seed: SEED, numRuns: SEQUENCES },
  );
});

Deno.test("redis-semaphore works on a node in memory", async () => {
  await using nodes = await startNodes(1);
  const client = new Redis(nodes.addresses[0]);
  const open = (number: number) => [
    new Mutex(client, "mutex", UNEXTENDED),
    new Semaphore(client, "semaphore", number, UNEXTENDED),
    new MultiSemaphore(client, "several", 2 * number, 2, UNEXTENDED),
  ];
  const [first, second] = [open(1), open(1)];
  for (let at = 0; at < first.length; at++) {
    assert(await first[at].tryAcquire());
    assert(await first[at]._refresh());
    assert(!await second[at].tryAcquire());
    await first[at].release();
    assert(await second[at].tryAcquire());
    await second[at].release();
  }
  const ended = new Promise<void>((resolve) => client.once("end", () => resolve()));
  client.disconnect();
  await ended;
});
