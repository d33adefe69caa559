/** What the contenders on `ioredis` share. */

import type { Contender } from "./contender.ts";
import { load } from "./packages.ts";

interface IoredisClient {
  readonly options: { enableAutoPipelining: boolean };
  once(event: "ready", listener: () => void): void;
  on(event: "error", listener: () => void): void;
  disconnect(): void;
}

/** A contender with one `ioredis` client for each node, with default options. */
export abstract class IoredisContender implements Contender {
  #clients: readonly IoredisClient[] = [];
  #urls: readonly string[] = [];

  /** Makes the library's own object on clients that are ready. */
  protected abstract create(clients: readonly unknown[]): Promise<void>;

  /** A contender of the same library, not opened yet. */
  protected abstract copy(): IoredisContender;

  abstract pair(resource: string): Promise<void>;

  abstract hold(resource: string): Promise<unknown>;

  async open(urls: readonly string[]): Promise<void> {
    this.#urls = urls;
    const { Redis } = await load("ioredis") as { Redis: new (url: string) => IoredisClient };
    this.#clients = urls.map((url) => new Redis(url));
    await Promise.all(this.#clients.map((client) =>
      new Promise<void>((resolve) => {
        client.on("error", () => {});
        client.once("ready", resolve);
      })
    ));
    await this.create(this.#clients);
  }

  async another(): Promise<Contender> {
    const another = this.copy();
    await another.open(this.#urls);
    return another;
  }

  /** The option may change at any time: `ioredis` looks at it for each command. */
  pipeline(on: boolean): void {
    for (const { options } of this.#clients) options.enableAutoPipelining = on;
  }

  close(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    return Promise.resolve();
  }
}
