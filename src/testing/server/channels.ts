/**
 * The channels of a server, and the connections that are subscribed to them.
 *
 * @module
 */
import { Notices, type Reply } from "./replies.ts";

/** A connection that can subscribe. */
export interface Listener {
  /** Its channels, the oldest first; while there are any, only a few commands are accepted. */
  subscriptions?: Set<string>;
  /** Sends a message of a channel to it. */
  deliver?(message: Reply): void;
}

/** The channels of one server. A channel exists while a connection is subscribed to it. */
export class Channels {
  readonly #listeners: Map<string, Set<Listener>> = new Map();

  /** Subscribes a connection to `channel`; returns the number of its channels. */
  subscribe(connection: Listener, channel: string): number {
    const subscriptions = connection.subscriptions ??= new Set();
    subscriptions.add(channel);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(connection));
    return subscriptions.size;
  }

  /** Unsubscribes a connection from `channel`; returns the number of its channels. */
  unsubscribe(connection: Listener, channel: string): number {
    connection.subscriptions?.delete(channel);
    const listeners = this.#listeners.get(channel);
    listeners?.delete(connection);
    if (listeners?.size === 0) this.#listeners.delete(channel);
    return connection.subscriptions?.size ?? 0;
  }

  /** Unsubscribes a connection from all channels. */
  leave(connection: Listener): void {
    for (const channel of [...connection.subscriptions ?? []]) {
      this.unsubscribe(connection, channel);
    }
  }

  /** How many connections are subscribed to `channel`. */
  count(channel: string): number {
    return this.#listeners.get(channel)?.size ?? 0;
  }

  /** Sends a message to all subscribers of `channel`; returns their number. */
  publish(channel: string, message: string): number {
    const found = this.#listeners.get(channel);
    if (!found) return 0;
    const listeners = [...found];
    const notice = new Notices([["message", channel, message]]);
    for (const connection of listeners) connection.deliver?.(notice);
    return listeners.length;
  }
}
