/** A node in memory that can be made to break one rule of its contract. */
import { publishedNode } from "../../src/nodes/published_node.ts";
import type { Grant, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import { SHARED } from "../../src/redis_node/scripts/readers.ts";
import type { NodeToTest } from "../../src/testing/mod.ts";
import { systemClock } from "../../src/time/clock.ts";
import { pauseMs, within } from "../../src/time/within.ts";
import { KeyspaceNode } from "./keyspace_node.ts";

/** How long a key of a node lives that never expires, in milliseconds. */
const FOREVER_MS = 86_400_000;

/** How long a slow step of a node takes, in milliseconds. */
const STEP_MS = 2;
/** After how long a node denies that has no answer, in milliseconds. */
const GIVES_UP_MS = 500;

/**
 * What a node does in another way than the good one that it is made of, and what that has in its
 * memory.
 */
type Breaks = (good: LockNode, store: KeyspaceNode) => Partial<LockNode>;

const DEFECTS = {
  "acquires what is held": (good, store) => ({
    acquire(request) {
      for (const key of request.keys) store.delete(key);
      return good.acquire(request);
    },
  }),
  "sets some of several keys": (good, store) => ({
    acquire(request) {
      const free = request.keys.filter((key) => store.holder(key) === undefined);
      const some = free.length < request.keys.length ? free : [];
      for (const key of some) store.set(key, request.value, request.ttlMs);
      return good.acquire(request);
    },
  }),
  "never expires": (good) => ({
    acquire: (request) => good.acquire({ ...request, ttlMs: FOREVER_MS }),
  }),
  "extends another's key": (good, store) => ({
    extend: (request) => good.extend({ ...request, value: store.holder(request.keys[0]) ?? "" }),
  }),
  "shortens": (_good, store) => ({
    extend({ keys, value, ttlMs }) {
      for (const key of keys) store.set(key, value, ttlMs);
      return Promise.resolve("granted");
    },
  }),
  "sets what it extends": (good) => ({
    async extend(request) {
      await good.acquire(request);
      return good.extend(request);
    },
  }),
  "deletes another's key": (good, store) => ({
    async release(request) {
      const grant = await good.release(request);
      request.keys.forEach((key) => store.delete(key));
      return grant;
    },
  }),
  "releases first": (good) => ({
    acquire: (request) => Promise.resolve().then(() => good.acquire(request)),
  }),
  "gets, then sets": (good, store) =>
    inTurn(good, {
      async acquire(request) {
        const { keys, value, ttlMs, counterHint } = request;
        if (counterHint) return await good.acquire(request);
        const found = await Promise.all(keys.map((key) => good.inspect(key)));
        await pauseMs(STEP_MS);
        if (found.some((state) => state !== undefined)) return "denied";
        for (const key of keys) store.set(key, value, ttlMs);
        return "granted";
      },
    }),
  "gets, then deletes": (good, store) =>
    inTurn(good, {
      async release({ keys, value }) {
        const found = await Promise.all(keys.map((key) => good.inspect(key)));
        const ours = keys.filter((_, index) => found[index]?.value === value);
        await pauseMs(STEP_MS);
        for (const key of ours) store.delete(key);
        return ours.length === keys.length ? "granted" : "denied";
      },
    }),
  "gets, then extends": (good, store) =>
    inTurn(good, {
      async extend(request) {
        const { keys, value, ttlMs } = request;
        const found = await Promise.all(keys.map((key) => good.inspect(key)));
        if (found.some((state) => state?.value !== value || state.remainingMs >= ttlMs)) {
          return await good.extend(request);
        }
        await pauseMs(STEP_MS);
        for (const key of keys) store.set(key, value, ttlMs);
        return "granted";
      },
    }),
  "counts whole seconds": (good) => ({
    acquire: (request) => good.acquire(inSeconds(request)),
    extend: (request) => good.extend(inSeconds(request)),
  }),
  "extends in whole seconds": (good) => ({ extend: (request) => good.extend(inSeconds(request)) }),
  "extends an expired row": (good, store) => {
    const rows = new Map<string, string>();
    return {
      ...remembering(good, rows),
      extend(request) {
        const { keys, value, ttlMs } = request;
        for (const key of keys) {
          if (rows.get(key) === value && !store.holder(key)) store.set(key, value, ttlMs);
        }
        return good.extend(request);
      },
    };
  },
  "inspects expired keys": (good) => {
    const rows = new Map<string, string>();
    return {
      ...remembering(good, rows),
      async inspect(key) {
        const state = await good.inspect(key);
        const value = rows.get(key);
        return state ?? (value === undefined ? undefined : { value, remainingMs: -1 });
      },
    };
  },
  "denies without an answer": (good) => ({
    acquire: (request) => impatient(good.acquire(request)),
  }),
  "denies extensions without an answer": (good) => ({
    extend: (request) => impatient(good.extend(request)),
  }),
  "answers nothing": () => ({ acquire: () => Promise.resolve(undefined as never) }),
  "drops requests at close": (_good, store) => ({ close: () => store.close() }),
  "loses releases in a hang": (good, store) => ({
    async release(request) {
      if (store.mode !== "hang") return await good.release(request);
      await good.inspect("any");
      return "granted";
    },
  }),
  "grants late what it does not set": (good, store) => ({
    async acquire(request) {
      if (store.mode !== "hang") return await good.acquire(request);
      await good.inspect("any");
      return "granted";
    },
  }),
  "counts alike": (good) => ({
    async acquire(request) {
      const grant = await good.acquire(request);
      return typeof grant === "number" ? 1 : grant;
    },
  }),
  "lets anybody raise counters": (good, store) => ({
    raiseCounters(request) {
      for (const key of request.keys) store.count(key, request.counterFloor!);
      return good.raiseCounters!(request);
    },
  }),
  "lowers counters": (_good, store) => ({
    raiseCounters({ keys, counterFloor }) {
      for (const key of keys) store.count(key, counterFloor!);
      return Promise.resolve(counterFloor!);
    },
  }),
  "adopts any key": (good, store) => ({
    adopt: (request) => good.adopt!({ ...request, replaces: store.holder(request.keys[0]) }),
  }),
  "adopts some of several keys": (good) => ({
    async adopt({ keys, ...request }) {
      const grants = await Promise.all(keys.map((key) => good.adopt!({ ...request, keys: [key] })));
      return grants.find((grant) => grant === "denied") ??
        grants.find((grant) => grant === "missing") ??
        grants[0];
    },
  }),
  "shortens what it adopts": (good, store) => ({
    async adopt(request) {
      const grant = await good.adopt!(request);
      const { keys, value, ttlMs } = request;
      if (grant === "granted") { for (const key of keys) store.set(key, value, ttlMs); }
      return grant;
    },
  }),
  "sets what it adopts": (good) => ({
    async adopt(request) {
      await good.acquire(request);
      return good.adopt!(request);
    },
  }),
  "deletes what it gives back": (good) => ({
    release: (request) => good.release({ ...request, replaces: undefined }),
  }),
  "gets, then adopts": (good, store) => ({
    async adopt(request) {
      const found = await good.inspect(request.keys[0]);
      await pauseMs(STEP_MS);
      if (request.keys.length > 1 || found?.value !== request.replaces) {
        return await good.adopt!(request);
      }
      for (const key of request.keys) store.set(key, request.value, found!.remainingMs);
      return "granted";
    },
  }),
  "shares what is held": (good) => ({
    async acquire(request) {
      const grant = await good.acquire(request);
      return request.mode ? "granted" : grant;
    },
  }),
  "lets writers in beside readers": (good, store) => ({
    acquire(request) {
      const shared = request.keys.filter((key) => store.holder(key) === SHARED);
      if (!request.mode) { for (const key of shared) store.delete(key); }
      return good.acquire(request);
    },
  }),
  "deletes what others share": (good, store) => ({
    async release(request) {
      const grant = await good.release(request);
      if (request.mode) { for (const key of request.keys) store.delete(key); }
      return grant;
    },
  }),
  "has a shared key expire with the last comer": (good, store) => ({
    async acquire(request) {
      const grant = await good.acquire(request);
      const { keys, mode, ttlMs } = request;
      if (mode && grant === "granted") { for (const key of keys) store.set(key, SHARED, ttlMs); }
      return grant;
    },
  }),
  "sets the shared lock that it extends": (good) => ({
    async extend(request) {
      if (request.mode) await good.acquire(request);
      return await good.extend(request);
    },
  }),
  "forgets who shares": (good) => ({
    async inspect(key) {
      const state = await good.inspect(key);
      return state && { ...state, sharers: undefined };
    },
  }),
  "lists what was not asked for": () => ({
    async *keys(prefix) {
      yield await Promise.resolve([`${prefix}]`, "another"]);
    },
  }),
  "never closes while hanging": (good, store) => ({
    close: () => store.mode === "hang" ? new Promise(() => {}) : good.close!(),
  }),
} satisfies Record<string, Breaks>;

/** One way to be wrong. */
export type Defect = keyof typeof DEFECTS;

/** A node with one defect or none, another node on the same store, and what has the store hang. */
export interface BrokenNode extends NodeToTest {
  readonly node: Required<Omit<LockNode, "diagnose" | "keys">>;
  hang(): void;
  resume(): void;
  peer(): BrokenNode;
}

/** Makes a node with one defect, or with none. */
export function brokenNode(
  defect?: Defect,
  store: KeyspaceNode = new KeyspaceNode("memory", systemClock),
): BrokenNode {
  const { diagnose: _diagnose, keys: _keys, ...good } = publishedNode(store);
  const breaks: Breaks = defect ? DEFECTS[defect] : () => ({});
  const node = {
    ...good,
    async close() {
      await good.close();
      store.resume(); // what it kept fails, as it is closed
    },
    ...breaks(good, store),
  };
  return {
    node,
    hang: () => store.mode = "hang",
    resume: () => store.resume(),
    peer: () => brokenNode(defect, store.peer()),
  };
}

/** Has a node that breaks a rule do one thing after another. */
function inTurn(good: LockNode, breaks: Partial<LockNode>): Partial<LockNode> {
  const { acquire, extend, release } = { ...good, ...breaks };
  let last: Promise<unknown> = Promise.resolve();
  const turn = (act: LockNode["acquire"]): LockNode["acquire"] => (request) => {
    const grant = last.then(() => act(request));
    last = grant;
    return grant;
  };
  return { acquire: turn(acquire), extend: turn(extend), release: turn(release) };
}

/** The request, with a TTL of whole seconds. */
function inSeconds(request: LockRequest): LockRequest {
  return { ...request, ttlMs: Math.max(Math.floor(request.ttlMs / 1_000), 1) * 1_000 };
}

/** A node that remembers which keys it has set, even if they have expired. */
function remembering(good: LockNode, rows: Map<string, string>): Partial<LockNode> {
  return {
    async acquire(request) {
      const grant = await good.acquire(request);
      if (grant !== "denied") { for (const key of request.keys) rows.set(key, request.value); }
      return grant;
    },
    async release(request) {
      const grant = await good.release(request);
      for (const key of request.keys) if (rows.get(key) === request.value) rows.delete(key);
      return grant;
    },
  };
}

/** The answer, or a denial if none comes in time. */
async function impatient(grant: Promise<Grant>): Promise<Grant> {
  return await within(GIVES_UP_MS, grant) ?? "denied";
}
