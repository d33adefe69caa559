/**
 * A node of one's own on a Durable Object of Cloudflare.
 *
 * @module
 */

import { DurableObject } from "cloudflare:workers";
import type { Grant, KeyState, LockNode, LockRequest } from "@hasp/redlock/nodes";

// ?1: the keys, ?4: the time
const HELD = "key IN (SELECT value FROM json_each(?1)) AND until > ?4";
const SET = "INSERT OR REPLACE INTO lock SELECT value, ?2, ?4 + ?3 FROM json_each(?1)";
const INSPECT = "SELECT value, until - ?2 AS remainingMs FROM lock WHERE key = ?1 AND until > ?2";

export class LockStore extends DurableObject { // keeps the locks of all Workers, one call at a time
  constructor(...args: ConstructorParameters<typeof DurableObject>) {
    super(...args);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS lock (key PRIMARY KEY, value, until)");
  }
  acquire(request: LockRequest): Grant {
    return this.#run(`${SET} WHERE NOT EXISTS (SELECT 1 FROM lock WHERE ${HELD})`, request);
  }
  extend(request: LockRequest): Grant {
    const until = request.shortens ? "?4 + ?3" : "max(until, ?4 + ?3)";
    return this.#run(`UPDATE lock SET until = ${until} WHERE ${HELD} AND value = ?2`, request);
  }
  release(request: LockRequest): Grant {
    return this.#run(`DELETE FROM lock WHERE ${HELD} AND value = ?2`, request);
  }
  inspect(key: string): KeyState | undefined {
    return this.ctx.storage.sql.exec<KeyState>(INSPECT, key, Date.now()).toArray()[0];
  }
  #run(sql: string, { keys, value, ttlMs }: LockRequest): Grant {
    const bound = [JSON.stringify(keys), value, ttlMs, Date.now()];
    const changed = this.ctx.storage.sql.exec(`${sql} RETURNING key`, ...bound).toArray();
    return changed.length === keys.length ? "granted" : "denied";
  }
}

/** The node of a request: `durableObjectNode(env.LOCKS.getByName("locks"))`. */
export const durableObjectNode = (store: Omit<LockNode, "name">): LockNode => ({
  name: "durable-object",
  acquire: (request) => store.acquire(request),
  extend: (request) => store.extend(request),
  release: (request) => store.release(request),
  inspect: (key) => store.inspect(key),
});
