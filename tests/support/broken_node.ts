/**
 * A node in memory that can be made to break one rule of its contract.
 *
 * @module
 */
import type { LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import { systemClock } from "../../src/time/clock.ts";
import { KeyspaceNode } from "./keyspace_node.ts";
import "./loaded_parts.ts";

/** How long a key of a node lives that never expires, in milliseconds. */
const FOREVER_MS = 86_400_000;

/** What a node does in another way than the good one that it is made of. */
type Breaks = (good: KeyspaceNode) => Partial<LockNode>;

const DEFECTS = {
  "acquires what is held": (good) => ({
    acquire(request, nodeIndex) {
      for (const key of request.keys) good.delete(key);
      good.acquire(request, nodeIndex);
    },
  }),
  "sets some of several keys": (good) => ({
    acquire(request, nodeIndex) {
      const free = request.keys.filter((key) => good.holder(key) === undefined);
      const some = free.length < request.keys.length ? free : [];
      for (const key of some) good.set(key, request.value, request.ttlMs);
      good.acquire(request, nodeIndex);
    },
  }),
  "never expires": (good) => ({
    acquire: (request, nodeIndex) => good.acquire(but(request, { ttlMs: FOREVER_MS }), nodeIndex),
  }),
  "extends another's key": (good) => ({
    extend(request, nodeIndex) {
      good.extend(but(request, { value: good.holder(request.keys[0]) }), nodeIndex);
    },
  }),
  "shortens": (good) => ({
    extend(request, nodeIndex) {
      for (const key of request.keys) good.set(key, good.holder(key)!, request.ttlMs);
      good.extend(request, nodeIndex);
    },
  }),
  "sets what it extends": (good) => ({
    extend(request, nodeIndex) {
      good.extend(request, nodeIndex); // which answers first
      queueMicrotask(() => {
        for (const key of request.keys) good.set(key, request.value, request.ttlMs);
      });
    },
  }),
  "deletes another's key": (good) => ({
    release(request, nodeIndex) {
      good.release(request, nodeIndex);
      queueMicrotask(() => request.keys.forEach((key) => good.delete(key)));
    },
  }),
  "releases first": (good) => ({
    acquire: (request, nodeIndex) => queueMicrotask(() => good.acquire(request, nodeIndex)),
  }),
  "answers twice": (good) => ({
    acquire(request, nodeIndex) {
      const grant: LockRequest["grant"] = (...answer) => {
        for (let times = 0; times < 2; times++) request.grant(...answer);
      };
      good.acquire(but(request, { grant }), nodeIndex);
    },
  }),
  "answers with another index": (good) => ({
    acquire(request, nodeIndex) {
      const grant: LockRequest["grant"] = (index, ...answer) => request.grant(index + 1, ...answer);
      good.acquire(but(request, { grant }), nodeIndex);
    },
  }),
  "loses releases in a hang": (good) => ({
    release(request, nodeIndex) {
      const lost = but(request, { value: "nobody's", deny: () => request.grant(nodeIndex) });
      good.release(good.mode === "hang" ? lost : request, nodeIndex);
    },
  }),
  "grants late what it does not set": (good) => ({
    acquire(request, nodeIndex) {
      if (good.mode !== "hang") return good.acquire(request, nodeIndex);
      good.inspect("any").then(() => request.grant(nodeIndex));
    },
  }),
  "counts alike": (good) => ({
    acquire(request, nodeIndex) {
      const grant: LockRequest["grant"] = (index) => {
        request.grant(index, undefined, 1);
      };
      good.acquire(but(request, { grant }), nodeIndex);
    },
  }),
  "lets anybody raise counters": (good) => ({
    raiseCounters(request, nodeIndex) {
      for (const key of request.keys) good.count(key, request.counterFloor!);
      good.raiseCounters(request, nodeIndex);
    },
  }),
  "lowers counters": (good) => ({
    raiseCounters(request, nodeIndex) {
      const { keys, counterFloor } = request;
      for (const key of keys) good.count(key, counterFloor!);
      request.grant(nodeIndex, undefined, counterFloor);
    },
  }),
  "ignores the queue": (good) => ({
    acquire(request, nodeIndex) {
      const ticket = request.ticket && but(request.ticket, { priority: "overdue" });
      good.acquire(but(request, { ticket }), nodeIndex);
    },
  }),
  "notifies the last": (good) => {
    let key = "";
    return {
      acquire(request, nodeIndex) {
        key = request.keys[0];
        good.acquire(request, nodeIndex);
      },
      subscribe(listener, nodeIndex) {
        const onReleased: typeof listener.onReleased = (index, ticketId, notice) => {
          listener.onReleased(index, good.queue(key).at(-1) ?? ticketId, notice);
        };
        good.subscribe(but(listener, { onReleased }), nodeIndex);
      },
    };
  },
  "keeps tickets that leave": () => ({ leaveQueue() {} }),
  "notifies after unsubscribe": () => ({ unsubscribe() {} }),
  "never closes while hanging": (good) => ({
    close: () => good.mode === "hang" ? new Promise(() => {}) : good.close(),
  }),
} satisfies Record<string, Breaks>;

/** One way to be wrong. */
export type Defect = keyof typeof DEFECTS;

/** Makes a node with one defect, or with none, and what has it hang. */
export function brokenNode(
  defect?: Defect,
): { node: Required<Omit<LockNode, "readyAtMs" | "diagnose">>; hang(): void; resume(): void } {
  const good = new KeyspaceNode("memory", systemClock);
  const breaks: Breaks = defect ? DEFECTS[defect] : () => ({});
  const node = {
    name: good.name,
    acquire: good.acquire.bind(good),
    extend: good.extend.bind(good),
    release: good.release.bind(good),
    raiseCounters: good.raiseCounters.bind(good),
    inspect: good.inspect.bind(good),
    subscribe: good.subscribe.bind(good),
    unsubscribe: good.unsubscribe.bind(good),
    leaveQueue: good.leaveQueue.bind(good),
    close: good.close.bind(good),
    ...breaks(good),
  };
  return { node, hang: () => good.mode = "hang", resume: () => good.resume() };
}

/** The same object, but for some of its members. */
function but<T extends object>(object: T, changes: Partial<T>): T {
  return new Proxy(object, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });
}
