/**
 * A node that keeps its locks in a SQLite database: for the processes of one machine.
 *
 * @module
 */

import type { Grant, KeyState, LockNode, LockRequest } from "@hasp/redlock/nodes";
import { DatabaseSync } from "node:sqlite";

const NOW = "unixepoch('subsec') * 1000";
const HELD = `key IN (SELECT value FROM json_each(?1)) AND expires > ${NOW}`; // ?1: the keys
const SET = `INSERT OR REPLACE INTO lock SELECT value, ?2, ${NOW} + ?3 FROM json_each(?1)`;
const EXTEND = `UPDATE lock SET expires = max(expires * ?4, ${NOW} + ?3)`;
const INSPECT = `SELECT value, expires - ${NOW} AS remainingMs FROM lock WHERE ${HELD}`;

/** Keeps locks in a file, for all processes that open it. */
export class SqliteNode implements LockNode {
  readonly name: string;
  readonly close = () => Promise.resolve(this.#db.close());
  readonly #db: DatabaseSync;
  constructor(path: string) {
    this.name = path;
    this.#db = new DatabaseSync(path, { timeout: 200 }); // how long it waits for other processes
    this.#db.exec("PRAGMA journal_mode = WAL");
    this.#db.exec("CREATE TABLE IF NOT EXISTS lock (key PRIMARY KEY, value, expires)");
  }
  acquire({ keys, value, ttlMs }: LockRequest): Promise<Grant> {
    const free = `NOT EXISTS (SELECT 1 FROM lock WHERE ${HELD})`;
    return this.#run(`${SET} WHERE ${free}`, keys, value, ttlMs);
  }
  extend({ keys, value, ttlMs, shortens }: LockRequest): Promise<Grant> {
    const longer = shortens ? 0 : 1; // whether a key may keep a longer TTL
    return this.#run(`${EXTEND} WHERE ${HELD} AND value = ?2`, keys, value, ttlMs, longer);
  }
  release({ keys, value }: LockRequest): Promise<Grant> {
    return this.#run(`DELETE FROM lock WHERE ${HELD} AND value = ?2`, keys, value);
  }
  async inspect(key: string): Promise<KeyState | undefined> {
    return await this.#db.prepare(INSPECT).get(JSON.stringify([key])) as KeyState | undefined;
  }
  async #run(sql: string, keys: readonly string[], ...rest: (string | number)[]): Promise<Grant> {
    const { changes } = await this.#db.prepare(sql).run(JSON.stringify(keys), ...rest);
    return changes === keys.length ? "granted" : "denied";
  }
}
