/**
 * The commands about channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PUBSUB NUMSUB.
 *
 * @module
 */
import type { CommandContext, CommandTable, Connection, ServerState } from "./command.ts";
import { Notices, type Reply } from "../server/replies.ts";

/** The commands. */
export const CHANNEL_COMMANDS: CommandTable = {
  publish: { arity: 3, run: ({ server }, [channel, message]) => publish(server, channel, message) },
  subscribe: { arity: -2, whileSubscribed: true, notInScripts: true, run: subscribe },
  unsubscribe: { arity: -1, whileSubscribed: true, notInScripts: true, run: unsubscribe },
  pubsub: { arity: -2 },
  "pubsub|numsub": {
    arity: -2,
    run: ({ server }, names) => names.flatMap((name) => [name, subscribersOf(server, name).length]),
  },
};

/** Sends a message to all subscribers of `channel`; returns their number. */
export function publish(server: ServerState, channel: string, message: string): number {
  const subscribers = subscribersOf(server, channel);
  const notice = new Notices([["message", channel, message]]);
  for (const { deliver } of subscribers) deliver(notice);
  return subscribers.length;
}

function subscribersOf({ connections }: ServerState, channel: string): Connection[] {
  return [...connections].filter(({ subscriptions }) => subscriptions.has(channel));
}

function subscribe({ connection }: CommandContext, names: readonly string[]): Reply {
  const { subscriptions } = connection;
  return new Notices(names.map((name) => ["subscribe", name, subscriptions.add(name).size]));
}

/**
 * Without names, unsubscribes from all channels; sends one notice even if there are no channels.
 */
function unsubscribe({ connection }: CommandContext, names: readonly string[]): Reply {
  const { subscriptions } = connection;
  const left = names.length > 0 ? names : [...subscriptions];
  if (left.length === 0) return new Notices([["unsubscribe", null, 0]]);
  return new Notices(left.map((name) => {
    subscriptions.delete(name);
    return ["unsubscribe", name, subscriptions.size];
  }));
}
