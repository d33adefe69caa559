/**
 * What a node needs of the client that reaches its server: the seam between {@linkcode RedisNode}
 * and a client.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/wire.ts";
import type { Command } from "../redis/encoder.ts";
import type { ConnectionError, ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import type { Operation } from "./scripts/script.ts";

/** A command, and what it means for locks. */
export interface LockCommand extends Command {
  readonly args: readonly string[];
  /** The keys of locks that it names; the guard's names those of the command ahead of it. */
  readonly keys: readonly string[];
  /** The request that it is for, and what it does for that. Missing: it is for none. */
  readonly request?: QuorumRequest;
  readonly operation?: Pick<Operation, "kind">;
}

/**
 * Sends commands to one server. Those with a key in common take effect in the order of the calls.
 */
export interface CommandSender {
  /** See {@linkcode QuorumNode.readyAtMs}. */
  readonly readyAtMs: number;
  /** When the reply that is being delivered arrived, by the monotonic clock in milliseconds. */
  readonly receivedAtMs: number;
  /** Whether commands can be sent now. */
  readonly open: boolean;
  /** A password that must be in no diagnosis. */
  readonly password: string | undefined;
  /**
   * Why only what undoes something may be submitted now: too many commands wait for replies, or the
   * connection is about to end. `undefined`: there is room.
   */
  readonly crowded: ConnectionError | undefined;
  /**
   * Sends a command, or several at once. The receiver is called once for each reply, and once for
   * all that will not come, perhaps before this returns.
   *
   * @param command The command.
   * @param receiver Receives the reply, or the error.
   * @param tag A number for the receiver; 0 by default.
   */
  submit<Sent extends LockCommand>(
    command: Sent,
    receiver: ReplyReceiver<Sent>,
    tag?: number,
  ): void;
  /**
   * Must be awaited before commands read keys. Rejects if the client behind it adds a prefix to
   * keys: it cannot add it to the names that scripts build, nor to patterns, so what is read would
   * be wrong. Missing: it adds none.
   */
  expectPlainKeys?(): Promise<void>;
  /**
   * Leaves the server, and connects again: it is not the primary any more.
   *
   * @param refusal How it refused a command.
   */
  leave(refusal: ReplyError): void;
  /** Closes for good, after a moment for replies that are due. Must settle in bounded time. */
  close(): Promise<void>;
}

/**
 * Sends commands in one tick, and resolves to their replies, of which some may be errors.
 *
 * @param connection The connection to the server.
 * @param commands At least one.
 * @param keys The keys of locks that they name.
 * @throws {ConnectionError} If one of them gets no reply.
 */
export function repliesTo(
  connection: CommandSender,
  commands: readonly (readonly string[])[],
  keys: readonly string[] = [],
): Promise<RawReply[]> {
  return new Promise((resolve, reject) => {
    const replies: RawReply[] = [];
    let missing = commands.length;
    const receiver: ReplyReceiver = {
      onReply(reply, _command, index) {
        replies[index] = reply;
        if (--missing === 0) resolve(replies);
      },
      onFailure: reject,
    };
    commands.forEach((args, index) => connection.submit({ args, keys }, receiver, index));
  });
}

/** What a sender reports to its node. */
export interface SenderEvents {
  /** It is open, on a new connection: nothing that was known of the last one counts any more. */
  onOpen?(): void;
  /** The server has accepted the login, or has answered without one; `onOpen` may come before. */
  onAccepted?(): void;
  /** It is open no longer, or could not be opened at first. */
  onLost?(error: ConnectionError): void;
}

/** Receives what a subscription brings. */
export interface ChannelListener {
  /**
   * Must be called for each message of the channel.
   *
   * @param message The message, as text or as its bytes in UTF-8.
   */
  onMessage(message: string | Uint8Array): void;
  /**
   * Should be called when the subscription is lost, so that the node subscribes again and callers
   * ask meanwhile.
   */
  onLost(): void;
}

/** Subscribes to a channel. See {@linkcode CommandNodeOptions.subscribe}. */
export type SubscribeChannel = (
  channel: string,
  listener: ChannelListener,
  signal: AbortSignal,
) => Promise<() => unknown>;

/** How one server is reached. */
export interface ServerAccess {
  /** The name of the node, without credentials. */
  readonly name: string;
  /** Where timers wait. */
  readonly wheel: TimerWheel;
  /** See {@linkcode QuorumNode.resends}. */
  readonly resends?: boolean;
  /**
   * Whether the client is not this library's: its connections may change, so that none shows that
   * the server was restarted, and it may not notice that one is silent.
   */
  readonly thirdParty?: boolean;
  /** Makes a sender: the node's own, or one more for a diagnosis. */
  newSender(events?: SenderEvents): CommandSender;
  /** Subscribes to a channel, until the signal aborts. Missing: waiting calls poll. */
  readonly subscribe?: SubscribeChannel | undefined;
  /** Closes what the senders and subscriptions share, after them. */
  close?(): void;
}
