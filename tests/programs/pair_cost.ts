/**
 * What acquiring and releasing cost the client alone: its streams answer at once, without servers
 * or sockets, and call back as those of Node do. Prints {@linkcode PairCost} as one line of JSON.
 *
 * Needs `--expose-gc`, and a young generation that holds what is allocated, because the heap's
 * growth counts only what no collection has freed; and `--no-opt`, because optimized code leaves
 * some allocations out, now these, now those.
 */
import v8 from "node:v8";
import type { Redlock } from "../../mod.ts";
import type { OnChunk, Transport } from "../../src/transport/transport.ts";

/** What is counted; all but the last for one pair on five nodes. */
export interface PairCost {
  readonly writes: number;
  readonly commands: number;
  readonly bytes: number;
  /** Bytes of the heap; `null` if a collection has freed some. */
  readonly allocatedBytes: number | null;
  /**
   * Bytes that are left of a pair when the young generation was collected, but not the whole heap.
   */
  readonly keptBytes: number;
  /** Promises that were created, also those of `await`. */
  readonly promises: number;
  /** The same on streams like those of Deno, whose reads and writes are promises. */
  readonly promisesOnPromises: number;
  /** Calls of `queueMicrotask`. */
  readonly microtasks: number;
  /** Writes to acquire a hundred locks in one moment, and to release them in one. */
  readonly writesAtOnce: number;
}

const NODES = 5;
/** Pairs until every function has run often. */
const WARM_UP_PAIRS = 2_000;
const PAIRS = 1_000;
/** Locks that are acquired in one moment. */
const AT_ONCE = 100;
/**
 * Locks that are held at any time while what is left of them is counted, each on another resource.
 */
const IN_FLIGHT = 20;

const STAR = 0x2a;
const DOLLAR = 0x24;
const LINE_FEED = 0x0a;
const LETTER_E = 0x45;
const OK = new TextEncoder().encode("+OK\r\n");
const ONE = new TextEncoder().encode(":1\r\n");

/** The reply to a group. */
function ones(count: number): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`*${count}\r\n${":1\r\n".repeat(count)}`);
}

/** What went out on all streams. */
const sent = { writes: 0, bytes: 0, commands: 0 };

/** A server that grants: `OK` for commands, 1 for scripts. */
class GrantingStream implements Transport {
  readonly #replies = new Uint8Array(65_536);
  #end = 0;
  #onChunk: OnChunk | undefined = undefined;
  #onEnd: () => void = () => {};

  receive(onChunk: OnChunk, onEnd: () => void): void {
    this.#onChunk = onChunk;
    this.#onEnd = onEnd;
    this.#deliver();
  }

  send(bytes: Uint8Array, onSent: () => void): void {
    sent.writes++;
    sent.bytes += bytes.length;
    for (let at = 0; at < bytes.length;) at = this.#answer(bytes, at);
    this.#deliver();
    onSent();
  }

  read(): Promise<number | null> {
    throw new Error("not needed");
  }

  write(): Promise<number> {
    throw new Error("not needed");
  }

  close(): void {
    this.#onEnd();
  }

  /** Answers the command at `at` and returns where the next begins. */
  #answer(bytes: Uint8Array, at: number): number {
    let words = 0;
    let keys = 0;
    let reply = OK;
    if (bytes[at++] !== STAR) throw new Error("a command is expected");
    for (; bytes[at] !== LINE_FEED; at++) {
      if (bytes[at]! >= 0x30) words = words * 10 + bytes[at]! - 0x30;
    }
    at++;
    for (let word = 0; word < words; word++) {
      let length = 0;
      if (bytes[at++] !== DOLLAR) throw new Error("a word is expected");
      for (; bytes[at] !== LINE_FEED; at++) {
        if (bytes[at]! >= 0x30) length = length * 10 + bytes[at]! - 0x30;
      }
      at++;
      if (word === 0 && bytes[at] === LETTER_E) reply = ONE;
      for (let digit = 0; word === 2 && reply === ONE && digit < length; digit++) {
        keys = keys * 10 + bytes[at + digit]! - 0x30;
      }
      at += length + 2;
    }
    sent.commands++;
    if (reply === ONE && keys > 1) reply = ones(keys);
    this.#replies.set(reply, this.#end);
    this.#end += reply.length;
    return at;
  }

  #deliver(): void {
    if (this.#end === 0 || !this.#onChunk) return;
    const count = this.#end;
    this.#end = 0;
    this.#onChunk(this.#replies, count);
  }
}

/** The same by promises: one for each read, and one for all writes. */
class PromisingStream implements Transport {
  readonly #stream = new GrantingStream();
  readonly #written = new Map<number, Promise<number>>();

  read(buffer: Uint8Array): Promise<number | null> {
    return new Promise((resolve) => {
      const onChunk = (bytes: Uint8Array, count: number) => {
        for (let at = 0; at < count; at++) buffer[at] = bytes[at]!;
        resolve(count);
        return true;
      };
      this.#stream.receive(onChunk, () => resolve(null));
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    this.#stream.send(bytes, () => {});
    const written = this.#written.get(bytes.length) ?? Promise.resolve(bytes.length);
    this.#written.set(bytes.length, written);
    return written;
  }

  close(): void {
    this.#stream.close();
  }
}

async function pairs(redlock: Redlock, count: number): Promise<void> {
  for (let pair = 0; pair < count; pair++) {
    const lock = await redlock.tryAcquire("job");
    await lock!.release();
  }
}

/** What one pair of `count` in a row sends. */
async function countSent(redlock: Redlock) {
  const before = { ...sent };
  await pairs(redlock, PAIRS);
  return {
    writes: (sent.writes - before.writes) / PAIRS,
    bytes: (sent.bytes - before.bytes) / PAIRS,
    commands: (sent.commands - before.commands) / PAIRS,
  };
}

/** How many writes it takes to acquire many locks in one moment, and to release them. */
async function countWritesAtOnce(redlock: Redlock): Promise<number> {
  const before = sent.writes;
  const names = Array.from({ length: AT_ONCE }, (_, index) => `job ${index}`);
  const locks = await Promise.all(names.map((name) => redlock.tryAcquire(name)));
  await Promise.all(locks.map((lock) => lock!.release()));
  return sent.writes - before;
}

async function countPromises(redlock: Redlock): Promise<number> {
  let promises = 0;
  const stop = v8.promiseHooks.onInit(() => promises++);
  await pairs(redlock, PAIRS);
  stop();
  return promises / PAIRS;
}

async function countMicrotasks(redlock: Redlock): Promise<number> {
  const before = microtasks;
  await pairs(redlock, PAIRS);
  return (microtasks - before) / PAIRS;
}

async function countAllocated(redlock: Redlock): Promise<number | null> {
  collect();
  const before = Deno.memoryUsage().heapUsed;
  let last = before;
  for (let part = 0; part < 10; part++) {
    await pairs(redlock, PAIRS / 10);
    const used = Deno.memoryUsage().heapUsed;
    if (used < last) return null;
    last = used;
  }
  return (last - before) / PAIRS;
}

/** Collects the heap, or its young generation alone. */
const collect = (globalThis as unknown as { gc(options?: { type: "minor" }): void }).gc;

async function countKept(redlock: Redlock): Promise<number> {
  const round = async () => {
    await Promise.all(Array.from({ length: IN_FLIGHT }, async () => {
      for (let pair = 0; pair < 5; pair++) {
        const lock = await redlock.tryAcquire(`job ${names++}`);
        await lock!.release();
      }
    }));
    for (let times = 0; times < 2; times++) collect({ type: "minor" }); // what survives both is old
  };
  let names = 0;
  await round();
  collect();
  const before = Deno.memoryUsage().heapUsed;
  while (names < PAIRS) await round();
  return (Deno.memoryUsage().heapUsed - before) / PAIRS;
}

const { queueMicrotask } = globalThis;
let microtasks = 0;
// before the library is loaded, because it keeps the function that it finds
globalThis.queueMicrotask = (callback) => {
  microtasks++;
  queueMicrotask(callback);
};
const { createRedlock } = await import("../../mod.ts");

const addresses = Array.from({ length: NODES }, (_, index) => `redis://127.0.0.1:${index + 1}`);

async function warmClient(open: () => Transport): Promise<Redlock> {
  const redlock = createRedlock(addresses, { connect: () => Promise.resolve(open()), label: "" });
  await pairs(redlock, WARM_UP_PAIRS);
  return redlock;
}

const redlock = await warmClient(() => new GrantingStream());
const counted = {
  ...await countSent(redlock),
  allocatedBytes: await countAllocated(redlock),
  keptBytes: await countKept(redlock),
  promises: await countPromises(redlock),
  microtasks: await countMicrotasks(redlock),
  writesAtOnce: await countWritesAtOnce(redlock),
};
await redlock.close();
const promising = await warmClient(() => new PromisingStream());
const cost: PairCost = { ...counted, promisesOnPromises: await countPromises(promising) };
await promising.close();
console.log(JSON.stringify(cost));
