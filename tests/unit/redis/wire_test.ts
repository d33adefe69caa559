import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { CommandQueue, type ReplyReceiver, type Slot } from "../../../src/redis/wire.ts";
import { ConnectionError, type RedisError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { assertProportional } from "../../support/growth.ts";

const SEED = 90_125;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const details = { address: "redis://h:6379", outcome: "unknown" } as const;
const UNKNOWN = new ConnectionError("unknown", details);
const NOT_SENT = new ConnectionError("not sent", details);

/** A queue that notes what its commands receive. */
class Bench implements ReplyReceiver {
  readonly queue = new CommandQueue();
  readonly received: unknown[][] = [];
  readonly #slots: Map<unknown, Slot> = new Map();

  pushFirst(text: string, context: unknown, tag: number): void {
    const slab = encoder.encode(text);
    this.queue.pushFirst({ slab, start: 0, end: slab.length }, this, context, tag);
  }

  push(text: string, context: unknown, tag = 0, receiver: ReplyReceiver = this): void {
    const slab = encoder.encode(text);
    const command = { slab, start: 0, end: slab.length };
    this.#slots.set(context, this.queue.push(command, receiver, context, tag));
  }

  /** Withdraws a command that was pushed, if it was. */
  withdraw(context: unknown): boolean {
    const slot = this.#slots.get(context);
    return slot !== undefined && this.queue.withdraw(slot, context);
  }

  /** Takes what would be written now; empty if there is nothing. */
  take(): string {
    return this.queue.length > this.queue.sent ? decoder.decode(this.queue.takeUnsent()) : "";
  }

  onReply(reply: RawReply, context: unknown, tag: number): void {
    this.received.push(["reply", reply, context, tag]);
  }

  onFailure(error: RedisError, context: unknown, tag: number): void {
    this.received.push(["failure", error.message, context, tag]);
  }
}

Deno.test("CommandQueue behaves like a plain list under any sequence of calls", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant("push") },
    { weight: 1, arbitrary: fc.constant("push first") },
    { weight: 3, arbitrary: fc.constant("take") },
    { weight: 4, arbitrary: fc.constant("settle") },
    { weight: 1, arbitrary: fc.constant("fail") },
    { weight: 2, arbitrary: fc.nat().map((index) => ({ withdraw: index })) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const bench = new Bench();
      const { queue } = bench;
      const expected: unknown[][] = [];
      let model: { id: number; sent: boolean; first?: boolean }[] = [];
      let next = 0;
      for (const step of steps) {
        if (step === "push") {
          model.push({ id: next, sent: false });
          bench.push(`${next};`, next, next);
          next++;
        } else if (step === "push first") {
          if (queue.sent > 0) continue; // as if the connection were being made
          model.unshift({ id: next, sent: false, first: true });
          bench.pushFirst(`${next};`, next, next);
          next++;
        } else if (step === "take") {
          const unsent = model.filter(({ sent }) => !sent);
          assertEquals(bench.take(), unsent.map(({ id }) => `${id};`).join(""));
          for (const command of unsent) command.sent = true;
        } else if (step === "settle") {
          if (!model[0]?.sent) continue;
          const { id } = model.shift()!;
          queue.settleFirst(next);
          expected.push(["reply", next, id, id]);
        } else if (step === "fail") {
          queue.failAll(UNKNOWN, NOT_SENT);
          for (const { id, sent } of model) {
            expected.push(["failure", sent ? "unknown" : "not sent", id, id]);
          }
          model = [];
        } else {
          const id = next - step.withdraw % 20; // one that is there, that was, or that will be
          const index = model.findIndex((command) => {
            return command.id === id && !command.sent && !command.first; // a login is not withdrawn
          });
          assertEquals(bench.withdraw(id), index >= 0);
          if (index >= 0) model.splice(index, 1);
        }
        const unsent = model.filter(({ sent }) => !sent).length;
        assertEquals([queue.length, queue.sent], [model.length, model.length - unsent]);
      }
      assertEquals(bench.received, expected);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

Deno.test("CommandQueue.failAll() fails each command once if a receiver has what it queues written at once", () => {
  const bench = new Bench();
  const writes: string[] = [];
  const again = (context: string): ReplyReceiver => ({
    onReply() {},
    onFailure(error) {
      bench.push(`${context} ${error.message};`, context);
      writes.push(bench.take());
    },
  });
  for (const context of ["a", "b"]) bench.push(context, context, 0, again(context));
  bench.take();
  bench.push("c", "c", 0, again("c"));
  bench.queue.failAll(UNKNOWN, NOT_SENT);
  assertEquals(writes, ["a unknown;", "b unknown;", "c not sent;"]);
  assertEquals([bench.queue.length, bench.queue.sent], [3, 3]);
  bench.queue.failAll(UNKNOWN, NOT_SENT);
  assertEquals(bench.received.map(([, , context]) => context), ["a", "b", "c"]);
});

Deno.test("CommandQueue.settleFirst() lets the receiver queue the next command", () => {
  const bench = new Bench();
  bench.push("a", "a", 0, { onReply: () => bench.push("b", "b"), onFailure() {} });
  bench.take();
  bench.queue.settleFirst(1);
  assertEquals(bench.take(), "b");
  bench.queue.settleFirst(2);
  assertEquals(bench.received, [["reply", 2, "b", 0]]);
});

Deno.test("CommandQueue.withdraw() keeps the others in order, however many come and go", () => {
  const bench = new Bench();
  for (let id = 0; id < 10_000; id++) {
    bench.push(`${id};`, id);
    if (id % 1_000 !== 0) assertEquals(bench.withdraw(id), true);
  }
  assertEquals([bench.queue.length, bench.queue.sent], [10, 0]);
  assertEquals(bench.take(), Array.from({ length: 10 }, (_, i) => `${i * 1_000};`).join(""));
});

Deno.test("CommandQueue.withdraw() does not take a later command that has got the same slot", () => {
  const bench = new Bench();
  for (let id = 0; id < 100; id++) {
    for (let earlier = 0; earlier < id; earlier++) assertEquals(bench.withdraw(earlier), false);
    bench.push(`${id};`, id);
    for (let earlier = 0; earlier < id; earlier++) assertEquals(bench.withdraw(earlier), false);
    assertEquals(bench.take(), `${id};`);
    bench.queue.settleFirst("OK");
  }
});

for (
  const [order, contexts] of [
    ["first to last", (count: number) => Array(count).keys()],
    ["last to first", (count: number) => [...Array(count).keys()].reverse()],
  ] as const
) {
  Deno.test(`CommandQueue.withdraw() takes time in proportion to what is withdrawn, ${order}`, () => {
    const withdrawMs = (count: number) => {
      const bench = new Bench();
      for (let id = 0; id < count; id++) bench.push("x", id);
      const startMs = performance.now();
      for (const id of contexts(count)) bench.withdraw(id);
      return performance.now() - startMs;
    };
    assertProportional(1_000, withdrawMs);
  });
}
