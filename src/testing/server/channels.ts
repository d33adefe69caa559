/**
 * Who listens to which channel.
 *
 * @module
 */
import { array, bulk } from "./replies.ts";

/** A connection, as far as it listens. */
export interface Listener {
  /** The channels it listens to, the oldest first; while there are any, few commands are accepted. */
  subscriptions?: Set<string>;
  /** Sends it a message of a channel, encoded. */
  deliver?(message: string): void;
}

/** The channels of one server. A channel is there as long as somebody listens to it. */
export class Channels {
  readonly #listeners: Map<string, Set<Listener>> = new Map();

  /** Has a connection listen to `channel`; says to how many it listens then. */
  subscribe(connection: Listener, channel: string): number {
    const subscriptions = connection.subscriptions ??= new Set();
    subscriptions.add(channel);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(connection));
    return subscriptions.size;
  }

  /** Has a connection listen to `channel` no more; says to how many it still listens. */
  unsubscribe(connection: Listener, channel: string): number {
    connection.subscriptions?.delete(channel);
    const listeners = this.#listeners.get(channel);
    listeners?.delete(connection);
    if (listeners?.size === 0) this.#listeners.delete(channel);
    return connection.subscriptions?.size ?? 0;
  }

  /** Has a connection listen to nothing more. */
  leave(connection: Listener): void {
    for (const channel of [...connection.subscriptions ?? []]) {
      this.unsubscribe(connection, channel);
    }
  }

  /** Sends a message to all who listen to `channel`; says how many those are. */
  publish(channel: string, message: string): number {
    const listeners = [...this.#listeners.get(channel) ?? []];
    const encoded = array([bulk("message"), bulk(channel), bulk(message)]);
    for (const connection of listeners) connection.deliver?.(encoded);
    return listeners.length;
  }
}
