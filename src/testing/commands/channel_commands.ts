/**
 * The commands about channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE.
 *
 * @module
 */
import { Channels } from "../server/channels.ts";
import type { Command, CommandContext, ServerState } from "./command.ts";
import { array, bulk, integer } from "../server/replies.ts";

/** The commands by their names in lower case. */
export const CHANNEL_COMMANDS: Readonly<Record<string, Command>> = {
  publish: { arity: 3, run: publish },
  subscribe: { arity: -2, whileSubscribed: true, run: subscribe },
  unsubscribe: { arity: -1, whileSubscribed: true, run: unsubscribe },
};

function channelsOf(server: ServerState): Channels {
  return server.channels ??= new Channels();
}

function publish({ server }: CommandContext, [channel, message]: readonly string[]): string {
  return integer(channelsOf(server).publish(channel, message));
}

function subscribe({ server, connection }: CommandContext, names: readonly string[]): string {
  const channels = channelsOf(server);
  return names.map((name) => notice("subscribe", name, channels.subscribe(connection, name)))
    .join("");
}

/** Without names, unsubscribes from all channels; sends one notice even if there are no channels. */
function unsubscribe({ server, connection }: CommandContext, names: readonly string[]): string {
  const channels = channelsOf(server);
  const left = names.length > 0 ? names : [...connection.subscriptions ?? []];
  if (left.length === 0) return notice("unsubscribe", undefined, 0);
  return left.map((name) => notice("unsubscribe", name, channels.unsubscribe(connection, name)))
    .join("");
}

function notice(kind: string, channel: string | undefined, count: number): string {
  return array([bulk(kind), bulk(channel), integer(count)]);
}
