/** One server in memory, on faked time, as a test sees it. */
import { RespDecoder } from "../../src/redis/decoder.ts";
import { commandBytes } from "./command_bytes.ts";
import { type RawReply, type Reply, textReply } from "../../src/redis/reply.ts";
import { WAKE_CHANNEL } from "../../src/redis_node/scripts/queue.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";
import type { Clock } from "../../src/time/clock.ts";

/** The memory of one server, which the nodes of several clients can share. */
export class KeyspaceServer {
  /** How far its clock is ahead, in milliseconds. */
  aheadMs = 0;
  /** What subscribed clients got, in order. */
  readonly messages: string[] = [];
  readonly #redis: MemoryRedis;
  readonly #session: MemorySession;
  readonly #listening: Map<string, MemorySession[]> = new Map();

  constructor(clock: Clock) {
    const leadMs = clock.wallMs() - clock.monotonicMs();
    const wallMs = () => clock.monotonicMs() + leadMs + this.aheadMs;
    this.#redis = new MemoryRedis({ clock: { wallMs } as Clock });
    this.#session = this.#redis.session();
  }

  /** The reply to a command. */
  send(command: Uint8Array): RawReply {
    return repliesIn(this.#session.push(command))[0];
  }

  /** The reply to a command in words, as text. */
  ask(...words: (string | number)[]): Reply {
    return textReply(this.send(commandBytes(words.map(String))));
  }

  /** Subscribes a client of that id. */
  subscribe(client: string, onMessage: (message: string) => void = () => {}): MemorySession {
    const session = this.#redis.session({
      onMessage: (bytes) => {
        const [[, , message]] = repliesIn(bytes).map(textReply) as string[][];
        this.messages.push(message);
        onMessage(message);
      },
    });
    session.push(commandBytes(["SUBSCRIBE", WAKE_CHANNEL + client]));
    this.#listening.set(client, [...this.#listening.get(client) ?? [], session]);
    return session;
  }

  /** Ends all subscriptions of a client. */
  unsubscribe(client: string): void {
    for (const session of this.#listening.get(client) ?? []) session.close();
  }
}

/** The whole replies in what a server sent. */
function repliesIn(bytes: Uint8Array): RawReply[] {
  const replies: RawReply[] = [];
  new RespDecoder((reply) => void replies.push(reply)).push(bytes);
  return replies;
}
