import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { EncodedCommand } from "../../../src/redis/encoder.ts";
import { CommandQueue, type ReplyReceiver } from "../../../src/redis/wire.ts";
import { ConnectionError, type RedisError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";

const SEED = 90_125;
const decoder = new TextDecoder();

const details = { address: "redis://h:6379", outcome: "unknown" } as const;
const UNKNOWN = new ConnectionError("unknown", details);
const NOT_SENT = new ConnectionError("not sent", details);

function encoded(text: string): EncodedCommand {
  return { slab: new TextEncoder().encode(text), start: 0, end: text.length };
}

/** A queue that notes what its commands receive. */
class Bench implements ReplyReceiver {
  readonly queue = new CommandQueue();
  readonly received: unknown[][] = [];

  pushFirst(text: string, context: unknown, tag: number): void {
    this.queue.pushFirst(encoded(text), this, context, tag);
  }

  push(text: string, context: unknown, tag = 0, receiver: ReplyReceiver = this): void {
    this.queue.push(encoded(text), receiver, context, tag);
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
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const bench = new Bench();
      const { queue } = bench;
      const expected: unknown[][] = [];
      let model: { id: number; sent: boolean }[] = [];
      let next = 0;
      for (const step of steps) {
        if (step === "push" || step === "push first") {
          const isFirst = step === "push first";
          if (isFirst && queue.sent > 0) continue; // as if the connection were being made
          model[isFirst ? "unshift" : "push"]({ id: next, sent: false });
          bench[isFirst ? "pushFirst" : "push"](`${next};`, next, next++);
        } else if (step === "take") {
          const unsent = model.filter(({ sent }) => !sent);
          assertEquals(bench.take(), unsent.map(({ id }) => `${id};`).join(""));
          for (const command of unsent) command.sent = true;
        } else if (step === "settle") {
          if (!model[0]?.sent) continue;
          const { id } = model.shift()!;
          queue.settleFirst(next);
          expected.push(["reply", next, id, id]);
        } else {
          queue.failAll(UNKNOWN, NOT_SENT);
          for (const { id, sent } of model) {
            expected.push(["failure", sent ? "unknown" : "not sent", id, id]);
          }
          model = [];
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
