/**
 * A Redis server, reached by the RESP2 client.
 *
 * @module
 */
import type { RedisAddress } from "../redis/address.ts";
import { Connection, type ConnectionOptions } from "../redis/connection.ts";
import { ReplyError } from "../redis/errors.ts";
import { isMessage } from "../redis/reply.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import type { ServerAccess, SubscribeChannel } from "./command_sender.ts";

/** Reaches the server at `address`. */
export function redisServer(
  address: RedisAddress,
  options: ConnectionOptions,
  wheel: TimerWheel,
): ServerAccess {
  return {
    name: address.name,
    wheel,
    newSender: (events) => new Connection(address, { ...options, ...events }, wheel),
    subscribe: subscribeBy(address, options, wheel),
  };
}

/** Each subscription has a connection of its own, which ends with it. */
function subscribeBy(
  address: RedisAddress,
  options: ConnectionOptions,
  wheel: TimerWheel,
): SubscribeChannel {
  return (channel, { onMessage, onLost }, signal) =>
    new Promise((resolve, reject) => {
      let subscribed = false;
      const connection = new Connection(address, {
        ...options,
        onLost: () => subscribed && onLost(),
        takesMessage(reply) {
          if (!isMessage(reply)) return false;
          onMessage(reply[2]);
          return true;
        },
      }, wheel);
      const close = () => connection.close();
      const fail = (error: Error) => void close().then(() => reject(error));
      signal.addEventListener("abort", close);
      connection.submit(
        { args: ["SUBSCRIBE", channel] },
        {
          onReply(reply) {
            if (reply instanceof ReplyError) return fail(reply);
            subscribed = true;
            resolve(close);
          },
          onFailure: fail,
        },
      );
    });
}
