/**
 * A node on Valkey GLIDE 2.
 *
 * @module
 */

import { commandNode } from "@hasp/redlock/nodes";
import { Batch, GlideClient } from "@valkey/valkey-glide";

// GLIDE names errors by its own words, and has maps as arrays of entries.
const CODES = { Response: "ERR", BusyLoading: "LOADING", PermissionDenied: "NOPERM" };
const ERROR = /^(?:An error was signalled by the server: - )?(\w+?)(?:Error)?: /u;
const codeOf = (word: string) => CODES[word as keyof typeof CODES] ?? word.toUpperCase();
const translated = (reply: unknown): unknown => {
  if (reply instanceof Error) {
    const message = reply.message.replace(ERROR, (_match, word) => `${codeOf(word)} `);
    return new Error(message, { cause: reply });
  }
  if (!Array.isArray(reply)) return reply;
  return reply.flatMap((part) => part?.key ? [part.key, part.value] : [translated(part)]);
};

/**
 * Makes a node of a server; it connects later. Close the node first, then the client by `close()`.
 */
export async function glideNode(url: string) {
  const { hostname: host, port, host: name } = new URL(url);
  const addresses = [{ host, port: Number(port || 6379) }];
  // the node's `timeoutMs` ends the wait before
  const options = { addresses, requestTimeout: 5_000 };
  const glide = await GlideClient.createClient({ ...options, lazyConnect: true });
  const node = commandNode({
    name,
    send: async (args) => translated(await glide.customCommand(args).catch((error) => error)),
    pipeline: async (commands) => {
      const batch = new Batch(false); // not atomic
      for (const args of commands) batch.customCommand(args);
      return (await glide.exec(batch, false))!.map(translated);
    },
    subscribe: async (channel, { onMessage }) => {
      const channelsAndPatterns = { 0: new Set([channel]) }; // 0: exact names
      const callback = ({ message }: { message: string | Uint8Array }) => onMessage(message);
      const pubsubSubscriptions = { channelsAndPatterns, callback };
      const subscriber = await GlideClient.createClient({ ...options, pubsubSubscriptions });
      return () => subscriber.close();
    },
  });
  return { node, glide };
}
