/**
 * What a node is made of: functions of a client, and what is known about it.
 *
 * @module
 */
import {
  BOOLEAN,
  check,
  checkAll,
  checkOptions,
  FUNCTION,
  NAME,
  POSITIVE,
  type Rules,
} from "../validate.ts";
import type { SubscribeChannel } from "../redis_node/command_sender.ts";

/** The default of {@linkcode CommandNodeOptions.timeoutMs}. */
const TIMEOUT_MS = 2_000;
/** The options that may be missing. */
const RULES: Rules = {
  pipeline: FUNCTION,
  subscribe: FUNCTION,
  resends: BOOLEAN,
  timeoutMs: POSITIVE,
};

/** Options of {@linkcode commandNode}. */
export interface CommandNodeOptions {
  /**
   * The name of the node in votes, errors and events; unique among the nodes of a client, and
   * without credentials.
   */
  readonly name: string;
  /**
   * Sends one command, and resolves to the reply. Rejects if the server replies with an error,
   * whose message must begin with the server's own (`NOSCRIPT …`), or if there is no reply; such an
   * error is the `cause` of the vote's.
   *
   * The reply may have the form of RESP2 or RESP3, or come from JSON: text or bytes, numbers,
   * digits or `bigint`, arrays or maps, and `null`. Everything else, such as `undefined` or a
   * gateway's own JSON, is no reply: the command may have been executed, and the node undoes it.
   *
   * @param args The name of the command and its arguments.
   * @param signal Aborts after {@linkcode timeoutMs}: the reply is no longer waited for.
   */
  readonly send: (args: string[], signal: AbortSignal) => Promise<unknown>;
  /**
   * Sends several commands at once, to be executed in their order, and resolves to their replies.
   * An error of the server is an `Error` in the place of the reply; any other `Error` there says
   * that the command may have been executed. Missing: commands about one key are sent one after
   * another.
   *
   * @param commands The commands.
   * @param signal Aborts after {@linkcode timeoutMs}.
   */
  readonly pipeline?:
    | ((commands: string[][], signal: AbortSignal) => Promise<unknown[]>)
    | undefined;
  /**
   * Subscribes to a channel on a connection of its own. Resolves once the server has confirmed it,
   * to a function that ends the subscription. If it rejects, takes longer than 10 s, or the
   * subscription is lost, the node subscribes again: after 50 ms at most, after longer and longer
   * delays of up to 1 s, and when the node is back. Every 12 s the node sends a message to itself,
   * and takes the subscription as lost if it does not arrive within 2 s. Missing: calls that wait
   * for a lock poll.
   *
   * @param channel The channel.
   * @param listener Its `onMessage` must be called with each message, and its `onLost` when the
   * subscription is lost.
   * @param signal Aborts when the node needs the subscription no longer, also before it has begun.
   */
  readonly subscribe?: SubscribeChannel | undefined;
  /**
   * Whether the client may send a command again by itself. Then a server may deny a lock because
   * the first copy of the command took it, so an attempt that fails is undone on the servers too
   * that denied it: one more command for each.
   *
   * @default {true}
   */
  readonly resends?: boolean | undefined;
  /**
   * How long a reply is waited for, in milliseconds: more than 0, and finite. Then the command
   * counts as lost, and the node as down until the server answers. Should be longer than
   * `nodeTimeoutMs`, after which a lock does without the node's vote.
   *
   * @default {2_000}
   */
  readonly timeoutMs?: number | undefined;
}

/** The client, as functions. */
export type CommandClient =
  & Pick<CommandNodeOptions, "name" | "send" | "pipeline">
  & Readonly<Record<"timeoutMs", number>>;

/** Checks the options, and fills in defaults. */
export function resolveNodeOptions(
  options: CommandNodeOptions,
): CommandNodeOptions & CommandClient {
  const action = "create node";
  checkOptions(action, options, ["name", "send", ...Object.keys(RULES)]);
  const { name, send, pipeline, subscribe, resends = true, timeoutMs = TIMEOUT_MS } = options;
  check(action, "name", name, NAME);
  check(action, "send", send, FUNCTION);
  checkAll(action, { pipeline, subscribe, resends, timeoutMs }, RULES);
  return { name, send, pipeline, subscribe, resends, timeoutMs };
}
