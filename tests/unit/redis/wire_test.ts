import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Command } from "../../../src/redis/encoder.ts";
import { CommandQueue, type ReplyReceiver } from "../../../src/redis/wire.ts";
import { ConnectionError, type RedisError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";

const SEED = 90_125;
const decoder = new TextDecoder();

const details = { address: "redis://h:6379", outcome: "unknown" } as const;
const UNKNOWN = new ConnectionError("unknown", details);
const NOT_SENT = new ConnectionError("not sent", details);

function encoded(text: string, count?: number): Command {
  const slab = new TextEncoder().encode(text);
  return { args: [text], bytes: { slab, start: 0, end: text.length }, count };
}

/** A queue that notes what its commands receive. */
class Bench implements ReplyReceiver {
  queue = new CommandQueue();
  readonly received: unknown[][] = [];

  pushFirst(text: string): void {
    this.queue.pushFirst(encoded(text), this);
  }

  push(text: string, tag = 0, receiver: ReplyReceiver = this, count?: number): void {
    this.queue.push(encoded(text, count), receiver, tag);
  }

  /** Takes what would be written now; empty if there is nothing. */
  take(): string {
    return this.queue.length > this.queue.sent ? decoder.decode(this.queue.takeUnsent()) : "";
  }

  onReply(reply: RawReply, { args }: Command, tag: number, index?: number): void {
    this.received.push(["reply", reply, args[0], tag, index]);
  }

  onFailure(error: RedisError, { args }: Command, tag: number, index?: number): void {
    this.received.push(["failure", error.message, args[0], tag, index]);
  }
}

Deno.test("CommandQueue behaves like a plain list under any sequence of calls", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant("push") },
    { weight: 2, arbitrary: fc.constant("push three") },
    { weight: 1, arbitrary: fc.constant("push first") },
    { weight: 3, arbitrary: fc.constant("take") },
    { weight: 4, arbitrary: fc.constant("settle") },
    { weight: 1, arbitrary: fc.constant("fail") },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
      const bench = new Bench();
      const expected: unknown[][] = [];
      let model: { text: string; tag: number; count: number; index: number; sent: boolean }[] = [];
      let next = 0;
      for (const step of steps) {
        if (step.startsWith("push")) {
          const isFirst = step === "push first";
          if (isFirst && bench.queue.sent > 0) continue; // as if the connection were being made
          const [tag, count] = [isFirst ? 0 : next, step === "push three" ? 3 : 1];
          model[isFirst ? "unshift" : "push"]({
            text: `${next};`,
            tag,
            count,
            index: 0,
            sent: false,
          });
          if (isFirst) bench.pushFirst(`${next++};`);
          else bench.push(`${next++};`, tag, bench, count === 1 ? undefined : count);
        } else if (step === "take") {
          const unsent = model.filter(({ sent }) => !sent);
          assertEquals(bench.take(), unsent.map(({ text }) => text).join(""));
          for (const command of unsent) command.sent = true;
        } else if (step === "settle") {
          if (!model[0]?.sent) continue;
          const { text, tag, count, index } = model[0];
          if (++model[0].index === count) model.shift();
          bench.queue.settleFirst(next);
          expected.push(["reply", next, text, tag, index]);
        } else {
          bench.queue.failAll(UNKNOWN, NOT_SENT);
          bench.queue = new CommandQueue();
          for (const { text, tag, index, sent } of model) {
            expected.push(["failure", sent ? "unknown" : "not sent", text, tag, index]);
          }
          model = [];
        }
        const due = (commands: typeof model) =>
          commands.reduce((sum, { count, index }) => sum + count - index, 0);
        assertEquals([bench.queue.length, bench.queue.sent], [
          due(model),
          due(model.filter(({ sent }) => sent)),
        ]);
      }
      assertEquals(bench.received, expected);
    }),
    { seed: SEED, numRuns: 300 },
  );
});
