/**
 * The part of Bun's module `bun` that the examples import, for the type check. Bun itself has the
 * module built in.
 */

/** Bun's client for Redis. */
export declare class RedisClient {
  constructor(url: string, options?: {
    connectionTimeout?: number;
    autoReconnect?: boolean;
    enableOfflineQueue?: boolean;
  });
  /** Called when the connection is made. */
  onconnect: (() => void) | null;
  /** Called when the connection is lost, and when an attempt to connect fails. */
  onclose: ((error: Error) => void) | null;
  /** Connects. */
  connect(): Promise<void>;
  /** Sends a command. */
  send(command: string, args: string[]): Promise<unknown>;
  /** Subscribes to a channel. */
  subscribe(channel: string, listener: (message: string) => void): Promise<number>;
  /** Closes the connection. */
  close(): void;
}
