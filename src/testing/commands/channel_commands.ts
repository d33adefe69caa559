/**
 * The commands about channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PUBSUB NUMSUB.
 *
 * @module
 */
import { Channels } from "../server/channels.ts";
import type { Command, CommandContext, ServerState } from "./command.ts";
import { Notices, type Reply } from "../server/replies.ts";

/** The commands by their names in lower case. */
export const CHANNEL_COMMANDS: Readonly<Record<string, Command>> = {
  publish: { arity: 3, run: publish },
  subscribe: { arity: -2, whileSubscribed: true, notInScripts: true, run: subscribe },
  unsubscribe: { arity: -1, whileSubscribed: true, notInScripts: true, run: unsubscribe },
  pubsub: {
    arity: -2,
    subcommands: {
      numsub: { arity: -2, run: subscriberCounts },
    },
  },
};

function channelsOf(server: ServerState): Channels {
  return server.channels ??= new Channels();
}

function publish({ server }: CommandContext, [channel, message]: readonly string[]): Reply {
  return channelsOf(server).publish(channel, message);
}

function subscribe({ server, connection }: CommandContext, names: readonly string[]): Reply {
  const channels = channelsOf(server);
  return new Notices(
    names.map((name) => ["subscribe", name, channels.subscribe(connection, name)]),
  );
}

/**
 * Without names, unsubscribes from all channels; sends one notice even if there are no channels.
 */
function unsubscribe({ server, connection }: CommandContext, names: readonly string[]): Reply {
  const channels = channelsOf(server);
  const left = names.length > 0 ? names : [...connection.subscriptions ?? []];
  if (left.length === 0) return new Notices([["unsubscribe", null, 0]]);
  return new Notices(
    left.map((name) => ["unsubscribe", name, channels.unsubscribe(connection, name)]),
  );
}

function subscriberCounts({ server }: CommandContext, names: readonly string[]): Reply {
  const channels = channelsOf(server);
  return names.flatMap((name) => [name, channels.count(name)]);
}
