/**
 * Stands for a transport in runtimes without TCP sockets: browsers, and edge runtimes that offer
 * nothing but `fetch`.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

/** Rejects, and says what to do. */
export const connect: Connect = () => {
  const message = "Cannot connect as this runtime has no TCP sockets: use a node over fetch, by " +
    "commandNode() of @hasp/redlock/nodes";
  return Promise.reject(new TypeError(message));
};

/** Replaces `listen` of `node_listener.ts`, and rejects too. */
export function listen(): Promise<never> {
  const message =
    "Cannot listen as this runtime has no TCP sockets: use 'connect' of a MemoryRedis";
  return Promise.reject(new TypeError(message));
}
