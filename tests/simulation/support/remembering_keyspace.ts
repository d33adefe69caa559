/** A keyspace that remembers what it held, to be able to lose its last moments in a crash. */
import type { EventLoop } from "./event_loop.ts";
import { Keyspace } from "./library.ts";

/** For how long a node remembers what it did, in milliseconds, to be able to lose it in a crash. */
const UNDO_MS = 5_000;

/** What a key was before it was changed. */
interface Undo {
  readonly atMs: number;
  readonly key: string;
  readonly value: string | undefined;
  readonly expiresAtMs: bigint | undefined;
}

/** A keyspace that knows what its keys were before. */
export class RememberingKeyspace extends Keyspace {
  readonly undos: Undo[] = [];
  readonly keys = new Map<string, bigint | undefined>();
  readonly #loop: EventLoop;

  constructor(clock: ConstructorParameters<typeof Keyspace>[0], loop: EventLoop) {
    super(clock);
    this.#loop = loop;
  }

  override set(key: string, value: string, expiresAtMs?: bigint): void {
    this.#remember(key);
    this.keys.set(key, expiresAtMs);
    super.set(key, value, expiresAtMs);
  }

  override delete(key: string): boolean {
    this.#remember(key);
    this.keys.delete(key);
    return super.delete(key);
  }

  override clear(): void {
    this.keys.clear();
    this.undos.length = 0;
    super.clear();
  }

  /** Undoes what was done since a true time; says which values came back. */
  rollBack(sinceMs: number): string[] {
    const restored: string[] = [];
    while (this.undos.length > 0 && this.undos.at(-1)!.atMs >= sinceMs) {
      const { key, value, expiresAtMs } = this.undos.pop()!;
      if (value === undefined) {
        super.delete(key);
        this.keys.delete(key);
      } else {
        super.set(key, value, expiresAtMs);
        this.keys.set(key, expiresAtMs);
        restored.push(value);
      }
    }
    return restored;
  }

  #remember(key: string): void {
    if (this.type(key) === "zset") return; // queues and readers stay as they are
    const atMs = this.#loop.nowMs;
    const value = this.get(key);
    this.undos.push({ atMs, key, value, expiresAtMs: this.keys.get(key) });
    if (this.undos.length > 64 && this.undos[0].atMs < atMs - UNDO_MS) {
      const fresh = this.undos.findIndex((undo) => undo.atMs >= atMs - UNDO_MS);
      this.undos.splice(0, fresh);
    }
  }
}
