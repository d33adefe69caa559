/**
 * A node in memory that can be made to break one rule of its contract.
 *
 * @module
 */
import type { LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type { NodeToTest } from "../../src/testing/mod.ts";
import { systemClock } from "../../src/time/clock.ts";
import { KeyspaceNode } from "./keyspace_node.ts";

/** How long a key of a node lives that never expires, in milliseconds. */
const FOREVER_MS = 86_400_000;

/** How long a slow step of a node takes, in milliseconds. */
const STEP_MS = 2;
/** After how long a node denies that has no answer, in milliseconds. */
const GIVES_UP_MS = 500;

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
  "gets, then sets": (good) => {
    const inTurn = turns();
    return {
      acquire(request, nodeIndex) {
        if (request.ticket ?? request.counterFloor) return good.acquire(request, nodeIndex);
        const { keys, value, ttlMs } = request;
        request.maybeSet |= 1 << nodeIndex;
        inTurn(async () => {
          const found = await Promise.all(keys.map((key) => good.inspect(key)));
          await step();
          if (found.some((state) => state !== undefined)) return request.deny(nodeIndex);
          for (const key of keys) good.set(key, value, ttlMs);
          request.grant(nodeIndex);
        });
      },
      extend: (request, nodeIndex) => inTurn(() => good.extend(request, nodeIndex)),
      release: (request, nodeIndex) => inTurn(() => good.release(request, nodeIndex)),
    };
  },
  "gets, then deletes": (good) => {
    const inTurn = turns();
    return {
      acquire: (request, nodeIndex) => inTurn(() => good.acquire(request, nodeIndex)),
      extend: (request, nodeIndex) => inTurn(() => good.extend(request, nodeIndex)),
      release(request, nodeIndex) {
        const { keys, value } = request;
        if (keys.some((key) => good.queue(key).length > 0)) return good.release(request, nodeIndex);
        inTurn(async () => {
          const found = await Promise.all(keys.map((key) => good.inspect(key)));
          const ours = keys.filter((_, index) => found[index]?.value === value);
          await step();
          for (const key of ours) good.delete(key);
          if (ours.length === keys.length) request.grant(nodeIndex);
          else request.deny(nodeIndex);
        });
      },
    };
  },
  "gets, then extends": (good) => {
    const inTurn = turns();
    return {
      acquire: (request, nodeIndex) => inTurn(() => good.acquire(request, nodeIndex)),
      extend(request, nodeIndex) {
        const { keys, value, ttlMs } = request;
        inTurn(async () => {
          const found = await Promise.all(keys.map((key) => good.inspect(key)));
          if (found.some((state) => state?.value !== value || state.remainingMs >= ttlMs)) {
            return good.extend(request, nodeIndex);
          }
          await step();
          for (const key of keys) good.set(key, value, ttlMs);
          request.grant(nodeIndex);
        });
      },
      release: (request, nodeIndex) => inTurn(() => good.release(request, nodeIndex)),
    };
  },
  "counts whole seconds": (good) => ({
    acquire: (request, nodeIndex) => good.acquire(inSeconds(request), nodeIndex),
    extend: (request, nodeIndex) => good.extend(inSeconds(request), nodeIndex),
  }),
  "extends in whole seconds": (good) => ({
    extend: (request, nodeIndex) => good.extend(inSeconds(request), nodeIndex),
  }),
  "extends an expired row": (good) => {
    const rows = new Map<string, string>();
    return {
      ...remembering(good, rows),
      extend(request, nodeIndex) {
        const { keys, value, ttlMs } = request;
        for (const key of keys) {
          if (rows.get(key) === value && !good.holder(key)) good.set(key, value, ttlMs);
        }
        good.extend(request, nodeIndex);
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
    acquire: (request, nodeIndex) => good.acquire(impatient(request, nodeIndex), nodeIndex),
  }),
  "denies extensions without an answer": (good) => ({
    extend: (request, nodeIndex) => good.extend(impatient(request, nodeIndex), nodeIndex),
  }),
  "drops requests at close": (good) => ({
    close: () => good.close(),
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

/** A node with one defect or none, another node on the same store, and what has the store hang. */
export interface BrokenNode extends NodeToTest {
  readonly node: Required<Omit<LockNode, "readyAtMs" | "adopt" | "diagnose" | "keys">>;
  hang(): void;
  resume(): void;
  peer(): BrokenNode;
}

/** Makes a node with one defect, or with none. */
export function brokenNode(
  defect?: Defect,
  good: KeyspaceNode = new KeyspaceNode("memory", systemClock),
): BrokenNode {
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
    async close() {
      await good.close();
      good.resume(); // what it kept fails, as it is closed
    },
    ...breaks(good),
  };
  return {
    node,
    hang: () => good.mode = "hang",
    resume: () => good.resume(),
    peer: () => brokenNode(defect, good.peer()),
  };
}

/** Runs steps one after another. */
function turns(): (step: () => unknown) => void {
  let last: Promise<unknown> = Promise.resolve();
  return (step) => last = last.then(step);
}

/** Takes as long as a slow step. */
function step(): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimer(resolve, STEP_MS));
}

/** The request, with a TTL of whole seconds. */
function inSeconds(request: LockRequest): LockRequest {
  return but(request, { ttlMs: Math.max(Math.floor(request.ttlMs / 1_000), 1) * 1_000 });
}

/** A node that remembers which keys it has set, even if they have expired. */
function remembering(good: KeyspaceNode, rows: Map<string, string>): Partial<LockNode> {
  return {
    acquire(request, nodeIndex) {
      const grant: LockRequest["grant"] = (...answer) => {
        for (const key of request.keys) rows.set(key, request.value);
        request.grant(...answer);
      };
      good.acquire(but(request, { grant }), nodeIndex);
    },
    release(request, nodeIndex) {
      const forget = () => {
        const ours = request.keys.filter((key) => rows.get(key) === request.value);
        for (const key of ours) rows.delete(key);
      };
      const after = (answer: "grant" | "deny"): LockRequest["deny"] => (...rest) => {
        forget();
        request[answer](...rest);
      };
      good.release(but(request, { grant: after("grant"), deny: after("deny") }), nodeIndex);
    },
  };
}

/** The request, denied if no answer comes in time. */
function impatient(request: LockRequest, nodeIndex: number): LockRequest {
  let answered = false;
  const once = (answer: () => void) => {
    if (answered) return;
    answered = true;
    systemClock.clearTimer(timer);
    answer();
  };
  const timer = systemClock.setTimer(() => once(() => request.deny(nodeIndex)), GIVES_UP_MS);
  return but(request, {
    grant: (...answer) => once(() => request.grant(...answer)),
    deny: (...answer) => once(() => request.deny(...answer)),
    missing: (...answer) => once(() => request.missing!(...answer)),
    enqueued: (...answer) => once(() => request.enqueued!(...answer)),
    fail: (...answer) => once(() => request.fail(...answer)),
  });
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
