/**
 * Stands for a transport in runtimes without TCP sockets: browsers, and edge runtimes that offer
 * nothing but `fetch`.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

/** Rejects, and says what to do; for good, so that no call waits for a second attempt. */
export const connect: Connect = () => {
  const message = "Cannot connect as this runtime has no TCP sockets: use a node over fetch, by " +
    "upstashNode() of @hasp/redlock/upstash";
  return Promise.reject(Object.assign(new TypeError(message), { permanent: true }));
};

/** Replaces `listen` of `node_listener.ts`, and rejects too. */
export function listen(): Promise<never> {
  const message =
    "Cannot listen as this runtime has no TCP sockets: use 'connect' of a MemoryRedis";
  return Promise.reject(new TypeError(message));
}
