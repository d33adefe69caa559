/**
 * Creates a lock client for Redis servers from their addresses.
 *
 * @module
 */
import { LockOptions, type RedlockOptions } from "./options.ts";
import { type Address, parseAddress, type RedisAddress, splitAddresses } from "./redis/address.ts";
import {
  type ClientOptions,
  CONNECT_OPTION_NAMES,
  resolveConnectOptions,
} from "./redis/client_options.ts";
import { listenerIn } from "./events.ts";
import { RedisNode } from "./redis_node/redis_node.ts";
import { redisServer } from "./redis_node/redis_server.ts";
import { ACTION, checkNodeCount } from "./client_nodes.ts";
import { type Redlock, redlockOn } from "./redlock.ts";
import { processName } from "./process_name.ts";
import { TimerWheel } from "./time/timer_wheel.ts";
import { typeError } from "./validate.ts";
import { watchNodes } from "./console_warnings.ts";

export type { Address, AddressParts } from "./redis/address.ts";

/** Shortest silence after which a connection is replaced, in milliseconds. */
const STALL_TIMEOUT_MS_MIN = 2_000;

/** Longest wait for one whole reply, as a multiple of the longest silence. */
const REPLY_TIMEOUT_STALLS = 2;
/**
 * Limit of the bytes of one reply: those of locks have less than a kilobyte, that of `INFO` has
 * some.
 */
const REPLY_BYTES_MAX = 1_048_576;
/**
 * Limit of the elements of one reply: a step of a list of keys has some 200, and more while the
 * server grows or shrinks its table.
 */
const REPLY_ELEMENTS_MAX = 4_096;

/** Options of {@linkcode createRedlock}: those of the locks, and those of the connections. */
export interface CreateRedlockOptions
  extends
    RedlockOptions,
    Pick<ClientOptions, "connectTimeoutMs" | "tls" | "clientName" | "credentials" | "connect"> {}

/**
 * Creates a lock client for independent Redis or Valkey servers. Each connection is opened when it
 * is first needed; a server that cannot be reached is not an error here, because a quorum of
 * servers is enough.
 *
 * @param addresses One server or an array of 1 to 31: each a URL or its text
 * (`redis://[user[:password]@]host[:port][/db]`, `rediss://…` for TLS, `valkey://` and `valkeys://`
 * for the same, `redis+unix:///path/to.sock[?db=n]`), or an object with the names that ioredis
 * uses. A text may have several addresses, separated by commas or white space. In a URL,
 * credentials are percent-encoded, and IPv6 addresses are in brackets. Use one, three or five
 * independent masters; never replicas, nor the shards of a cluster.
 * @param options Options of the locks, which each call can replace, and of the connections.
 * @returns The client. Close it, or declare it with `await using`.
 * @throws {TypeError} If `addresses` is empty or `undefined`, such as a variable of the environment
 * that is not set, an address is malformed or a client, a server is listed twice (also under
 * another database number), or an option is unknown or of the wrong type. No message contains
 * credentials.
 * @throws {RangeError} If there are more than 31 addresses, or an option is out of range.
 *
 * @example Three nodes
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses, { ttlMs: 5_000 });
 * const lock = await redlock.tryAcquire("cron:nightly");
 * assert(lock !== undefined);
 * await lock?.release();
 * ```
 *
 * @example Fencing tokens
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses, { fencing: true });
 * const tokens: number[] = [];
 * for (const _ of [1, 2]) {
 *   await redlock.using("invoice:42", ({ fencingToken }) => void tokens.push(fencingToken));
 * }
 * assert(tokens[0] < tokens[1]);
 * ```
 */
export function createRedlock<Fencing extends boolean = boolean>(
  addresses: Address | readonly Address[] | undefined,
  options: CreateRedlockOptions & { fencing?: Fencing | undefined } = {},
): Redlock<Fencing> {
  const parsed = parseAddresses(addresses);
  const lockOptions = new LockOptions(ACTION, options, processName(), CONNECT_OPTION_NAMES);
  const { nodeTimeoutMs, onEvent } = lockOptions.defaults;
  const stallTimeoutMs = Math.max(STALL_TIMEOUT_MS_MIN, 2 * nodeTimeoutMs);
  const connection = {
    ...resolveConnectOptions(options, parsed),
    stallTimeoutMs,
    replyTimeoutMs: REPLY_TIMEOUT_STALLS * stallTimeoutMs,
    replyBytesMax: REPLY_BYTES_MAX,
    replyElementsMax: REPLY_ELEMENTS_MAX,
  };
  const wheel = new TimerWheel();
  const listener = listenerIn(wheel.context, onEvent) ?? watchNodes(wheel, parsed.length);
  const nodes = parsed.map((address) =>
    new RedisNode(redisServer(address, connection, wheel), listener)
  );
  return redlockOn(wheel, nodes, lockOptions) as Redlock<Fencing>;
}

function parseAddresses(addresses: Address | readonly Address[] | undefined): RedisAddress[] {
  const isArray = Array.isArray(addresses);
  const given: readonly Address[] = isArray ? addresses : [addresses];
  const all = given.flatMap<Address>((address) => {
    return typeof address === "string" ? splitAddresses(address) : [address];
  });
  if (all.length === 0) throw typeError(ACTION, "'addresses' must be a non-empty array");
  checkNodeCount("addresses", all.length);
  const parsed = all.map((address, index) => {
    return parseAddress(address, isArray ? `addresses[${index}]` : undefined);
  });
  const servers = new Set<string>();
  for (const { server, name } of parsed) {
    if (servers.has(server)) {
      throw typeError(ACTION, `server ${name} is listed twice: each vote needs its own server`);
    }
    servers.add(server);
  }
  return parsed;
}
