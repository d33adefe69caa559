/**
 * A Redis server, reached by the RESP2 client.
 *
 * @module
 */
import type { RedisAddress } from "../redis/address.ts";
import { Connection, type ConnectionOptions } from "../redis/connection.ts";
import { Subscriber } from "../redis/subscriber.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import type { ServerAccess } from "./command_sender.ts";

/** Reaches the server at `address`. */
export function redisServer(
  address: RedisAddress,
  options: ConnectionOptions,
  wheel: TimerWheel,
): ServerAccess {
  return {
    ...address,
    wheel,
    open: (events) => new Connection(address, { ...options, ...events }, wheel),
    subscribe: (channel, owner) => new Subscriber(address, options, wheel, channel, owner),
  };
}
