/**
 * A {@linkcode LockNode} on any Redis client: made of one function that sends a command.
 *
 * @module
 */
import type { LockNode } from "../quorum/lock_node.ts";
import { RedisError } from "../redis/errors.ts";
import { RedisNode } from "../redis_node/redis_node.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { checkOptions, checkPositiveMs, checkType } from "../validate.ts";
import {
  type ChannelClient,
  ChannelSubscription,
  type SubscribeChannel,
} from "./channel_subscription.ts";
import {
  type ClientCalls,
  connectionError,
  Exchanges,
  type SendCommand,
  type SendPipeline,
} from "./client_calls.ts";
import { OrderedSender } from "./ordered_sender.ts";

/** The default of {@linkcode CommandNodeOptions.timeoutMs}. */
const TIMEOUT_MS = 2_000;
/** The options. */
const OPTION_NAMES: readonly string[] = [
  "name",
  "send",
  "pipeline",
  "subscribe",
  "resends",
  "timeoutMs",
];

/** Options of {@linkcode commandNode}. */
export interface CommandNodeOptions {
  /** The name of the node in votes, errors and events; unique among the nodes of a client, and without credentials. */
  readonly name: string;
  /**
   * Sends one command, and resolves to the reply. Rejects if the server replies with an error, whose message must begin
   * with the server's own (`NOSCRIPT …`), or if there is no reply.
   *
   * The reply may have the form of RESP2 or RESP3, or come from JSON: text or bytes, numbers, digits or `bigint`, arrays
   * or maps, and `null`. Everything else, such as `undefined` or a gateway's own JSON, is no reply: the command may have
   * been executed, and the node undoes it.
   *
   * @param args The name of the command and its arguments.
   * @param signal Aborts after {@linkcode timeoutMs}: the reply is no longer waited for.
   */
  readonly send: (args: string[], signal: AbortSignal) => Promise<unknown>;
  /**
   * Sends several commands at once, to be executed in their order, and resolves to their replies. An error of the server
   * is an `Error` in the place of the reply; any other `Error` there says that the command may have been executed.
   * Missing: commands about one key are sent one after another.
   *
   * @param commands The commands.
   * @param signal Aborts after {@linkcode timeoutMs}.
   */
  readonly pipeline?:
    | ((commands: string[][], signal: AbortSignal) => Promise<unknown[]>)
    | undefined;
  /**
   * Subscribes to a channel on a connection of its own. Resolves once the server has confirmed it, to a function that ends
   * the subscription. If it rejects, takes longer than 10 s, or the subscription is lost, the node subscribes again after
   * 500 ms, and after longer and longer delays of up to 30 s. Every 10 s the node sends a message to itself, and takes the
   * subscription as lost if it does not arrive. Missing: calls that wait for a lock poll.
   *
   * @param channel The channel.
   * @param listener Its `onMessage` must be called with each message, and its `onLost` when the subscription is lost.
   */
  readonly subscribe?: SubscribeChannel | undefined;
  /**
   * Whether the client may send a command again by itself. Then a server may deny a lock because the first copy of the
   * command took it, so an attempt that fails is undone on the servers too that denied it: one more command for each.
   *
   * @default {true}
   */
  readonly resends?: boolean | undefined;
  /**
   * How long a reply is waited for, in milliseconds: more than 0, and finite. Then the command counts as lost, and the
   * node as down until it answers a `PING`. Should be longer than `nodeTimeoutMs`, after which a lock does without the
   * node's vote.
   *
   * @default {2_000}
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * Makes a node of any client for one Redis or Valkey server: with fencing tokens, inspection and health check, and with
 * notifications if there is `subscribe`.
 *
 * The client may reorder commands, lose them, or repeat them: the node sends the commands about one key one after
 * another, and undoes again what may arrive late. Closing the node does not close the client.
 *
 * @example Nodes on another client
 * ```ts
 * import { assert } from "@std/assert";
 * import { Redlock } from "@hasp/redlock";
 * import { commandNode } from "@hasp/redlock/nodes";
 * import { connect } from "@hasp/redlock/redis"; // in place of any client
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using servers = await startNodes(3);
 * const clients = await Promise.all(servers.addresses.map((address) => connect(address)));
 * {
 *   await using redlock = new Redlock(clients.map((client) =>
 *     commandNode({
 *       name: client.address,
 *       send: (args, signal) => client.send(args, { signal }),
 *       resends: false,
 *     })
 *   ));
 *   await using lock = await redlock.acquire("invoice:42");
 *   assert(lock.held);
 *   assert(await redlock.tryAcquire("invoice:42") === undefined);
 * }
 * for (const client of clients) await client.close();
 * ```
 *
 * @param options The client, as functions, and what is known about it.
 * @returns The node, for `new Redlock(nodes)`.
 * @throws {TypeError} If an option is missing, unknown or of the wrong type, or `name` is empty.
 * @throws {RangeError} If `timeoutMs` is out of range.
 */
export function commandNode(options: CommandNodeOptions): LockNode {
  const { subscribe, resends, ...client } = clientOf(options);
  const wheel = new TimerWheel();
  const exchanges = new Exchanges(client, wheel);
  const channels: ChannelClient = {
    subscribe: subscribe!,
    async publish(channel) {
      const { answers: [answer] } = await exchanges.run([["PUBLISH", channel, ""]]);
      return !(answer instanceof RedisError);
    },
  };
  const node = new RedisNode({
    name: client.name,
    wheel,
    resends,
    open: (events = {}) => new OrderedSender(client, wheel, events),
    subscribe: (channel, owner) => new ChannelSubscription(channels, wheel, channel, owner),
  });
  const waiting: Partial<LockNode> = subscribe === undefined ? {} : {
    subscribe: (listener, nodeIndex) => node.subscribe(listener, nodeIndex),
    unsubscribe: () => node.unsubscribe(),
    leaveQueue: (keys, ticketId) => node.leaveQueue(keys, ticketId),
  };
  return {
    name: client.name,
    acquire: (request, nodeIndex) => node.acquire(request, nodeIndex),
    extend: (request, nodeIndex) => node.extend(request, nodeIndex),
    release: (request, nodeIndex) => node.release(request, nodeIndex),
    raiseCounters: (request, nodeIndex) => node.raiseCounters(request, nodeIndex),
    inspect: (key) => node.inspect(key),
    diagnose: (timeoutMs, key) => node.diagnose(timeoutMs, key),
    ...waiting,
    async close() {
      await node.close();
      exchanges.endAll(connectionError(client.name, "the node was closed", "unknown"));
      wheel.close();
    },
  };
}

/** The options, with their defaults. */
interface Client extends ClientCalls {
  readonly subscribe: SubscribeChannel | undefined;
  readonly resends: boolean;
}

/** Checks the options, and fills in defaults. */
function clientOf(options: CommandNodeOptions): Client {
  const attempt = "create node";
  checkOptions(attempt, options, OPTION_NAMES);
  const { name, send, pipeline, subscribe, resends = true, timeoutMs = TIMEOUT_MS } = options;
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`Cannot ${attempt} as 'name' must be a non-empty string`);
  }
  if (typeof send !== "function") {
    throw new TypeError(
      `Cannot ${attempt} as 'send' must be a function: current type is '${typeof send}'`,
    );
  }
  checkType(attempt, "pipeline", pipeline, "function");
  checkType(attempt, "subscribe", subscribe, "function");
  checkType(attempt, "resends", resends, "boolean");
  checkPositiveMs(attempt, "timeoutMs", timeoutMs);
  return {
    name,
    send: send as SendCommand,
    pipeline: pipeline as SendPipeline | undefined,
    subscribe,
    resends,
    timeoutMs,
  };
}
