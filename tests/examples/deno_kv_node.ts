/**
 * A node that keeps its locks in Deno KV: for Deno Deploy, and for processes that share a database.
 *
 * @module
 */

/// <reference lib="deno.unstable" />
import type { Grant, LockNode } from "@hasp/redlock/nodes";

type Held = { value: string; untilMs: number } | null;

/**
 * Keeps locks in Deno KV. A lock ends `skewMs` late, because that much the clients' clocks may
 * differ.
 */
export function denoKvNode(kv: Deno.Kv, skewMs = 1_000): LockNode {
  let last: Promise<unknown> = Promise.resolve();
  // Deno KV deletes an entry some time after `expireIn`, so the time is compared instead.
  const alive = (held: Held) => held && held.untilMs + skewMs > Date.now() ? held : null;
  const commit = (keys: readonly string[], next: (held: Held) => Held | "no", all = false) => {
    const run = async (): Promise<Grant> => {
      const entries = await Promise.all(keys.map((key) => kv.get<Held>(["lock", key])));
      const changes = entries.map(({ key, value }) => ({ key, held: next(alive(value)) }))
        .filter(({ held }) => held !== "no");
      const granted = changes.length === keys.length;
      // a write would disturb others
      if (!granted && (all || changes.length === 0)) return "denied";
      const atomic = kv.atomic().check(...entries);
      for (const { key, held } of changes) held ? atomic.set(key, held) : atomic.delete(key);
      return !(await atomic.commit()).ok ? await run() : granted ? "granted" : "denied";
    };
    const committed = last.then(run); // in the order of the calls
    last = committed.catch(() => {});
    return committed;
  };
  const until = (ttlMs: number, held?: Held) => Math.max(held?.untilMs ?? 0, Date.now() + ttlMs);
  return {
    name: "deno-kv",
    acquire: ({ keys, value, ttlMs }) =>
      commit(keys, (held) => held ? "no" : { value, untilMs: until(ttlMs) }, true),
    extend: ({ keys, value, ttlMs, shortens }) =>
      commit(keys, (held) => {
        if (held?.value !== value) return "no";
        return { value, untilMs: until(ttlMs, shortens ? null : held) };
      }),
    release: ({ keys, value }) => commit(keys, (held) => held?.value === value ? null : "no"),
    async inspect(key) {
      const held = alive((await kv.get<Held>(["lock", key])).value);
      return held ? { value: held.value, remainingMs: held.untilMs - Date.now() } : undefined;
    },
  };
}
