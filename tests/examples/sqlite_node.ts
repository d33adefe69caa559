/**
 * A node that keeps its locks in a SQLite database: for the processes of one machine.
 *
 * @module
 */

import type { KeyState, LockNode, LockRequest } from "@hasp/redlock/nodes";
import { DatabaseSync } from "node:sqlite";

/** Keeps locks in a file, for all processes that open it. */
export class SqliteNode implements LockNode {
  readonly name: string;
  readonly #database: DatabaseSync;

  constructor(path: string) {
    this.name = path;
    this.#database = new DatabaseSync(path);
    this.#database.exec("PRAGMA busy_timeout = 200"); // how long to wait for other processes
    this.#database.exec("PRAGMA journal_mode = WAL");
    this.#database.exec("CREATE TABLE IF NOT EXISTS lock (key PRIMARY KEY, value, expires)");
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    const { keys, value, ttlMs } = request;
    this.#transact(request, nodeIndex, () => {
      if (keys.some((key) => this.#find(key) !== undefined)) return false;
      request.maybeSet |= 1 << nodeIndex; // before the first key is set
      const set = this.#database.prepare("INSERT OR REPLACE INTO lock VALUES (?, ?, ?)");
      for (const key of keys) set.run(key, value, Date.now() + ttlMs);
      return true;
    });
  }

  extend(request: LockRequest, nodeIndex: number): void {
    const set = "UPDATE lock SET expires = max(expires, ?) WHERE key = ?";
    this.#forOurs(request, nodeIndex, (key) => {
      this.#database.prepare(set).run(Date.now() + request.ttlMs, key);
    });
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#forOurs(request, nodeIndex, (key) => {
      this.#database.prepare("DELETE FROM lock WHERE key = ?").run(key);
    });
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return Promise.resolve(this.#find(key));
  }

  close(): Promise<void> {
    this.#database.close();
    return Promise.resolve();
  }

  /** Changes the keys that hold the value. */
  #forOurs(request: LockRequest, nodeIndex: number, change: (key: string) => void): void {
    const { keys, value } = request;
    this.#transact(request, nodeIndex, () => {
      const ours = keys.filter((key) => this.#find(key)?.value === value);
      ours.forEach(change);
      return ours.length === keys.length;
    });
  }

  /** Runs a step while no other process can write, and answers the request. */
  #transact(request: LockRequest, nodeIndex: number, step: () => boolean): void {
    let granted: boolean;
    try {
      this.#database.exec("BEGIN IMMEDIATE"); // a plain BEGIN lets another process write first
      granted = step();
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      return request.fail(nodeIndex, error as Error);
    }
    if (granted) request.grant(nodeIndex);
    else request.deny(nodeIndex);
  }

  #find(key: string): KeyState | undefined {
    const row = this.#database.prepare("SELECT value, expires FROM lock WHERE key = ?").get(key);
    const remainingMs = Number(row?.expires ?? 0) - Date.now();
    return remainingMs > 0 ? { value: String(row!.value), remainingMs } : undefined;
  }
}
