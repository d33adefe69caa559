import { assertEquals, assertStrictEquals } from "@std/assert";
import fc from "fast-check";
import { CommandQueue, type ReplyReceiver } from "../../../src/redis/command_queue.ts";
import { ConnectionError, type RedisError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { assertGrowth } from "../../support/growth.ts";

const SEED = 90_125;

/** Notes what it is told. */
class Recorder implements ReplyReceiver {
  readonly heard: unknown[][] = [];

  onReply(reply: RawReply, context: unknown, tag: number): void {
    this.heard.push(["reply", reply, context, tag]);
  }

  onFailure(error: RedisError, context: unknown, tag: number): void {
    this.heard.push(["failure", error.message, context, tag]);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function command(text: string): Uint8Array {
  return encoder.encode(text);
}

/** What would be written now; empty where there is nothing. */
function unsentText(queue: CommandQueue): string {
  return queue.unsent > 0 ? decoder.decode(queue.takeUnsent()) : "";
}

function error(message: string): ConnectionError {
  return new ConnectionError(message, { address: "redis://h:6379", outcome: "unknown" });
}

const UNKNOWN = error("unknown");
const NOT_SENT = error("not sent");

Deno.test("CommandQueue.takeUnsent() joins everything that was queued into one piece", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  queue.push(command("a"), receiver, 1, 0);
  queue.push(command("b"), receiver, 2, 0);
  assertEquals(unsentText(queue), "ab");
  assertEquals(unsentText(queue), "");
});

Deno.test("CommandQueue counts commands and those that are not written", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  queue.push(command("a"), receiver, 1, 0);
  queue.push(command("b"), receiver, 2, 0);
  assertEquals([queue.length, queue.unsent], [2, 2]);
  queue.takeUnsent();
  queue.push(command("c"), receiver, 3, 0);
  assertEquals([queue.length, queue.unsent], [3, 1]);
  queue.settleFirst("OK");
  assertEquals([queue.length, queue.unsent], [2, 1]);
});

Deno.test("CommandQueue.settleFirst() hands replies out first in, first out", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  queue.push(command("a"), receiver, "first", 7);
  queue.push(command("b"), receiver, "second", 8);
  queue.takeUnsent();
  assertEquals(queue.settleFirst(1), true);
  assertEquals(queue.settleFirst(null), true);
  assertEquals(receiver.heard, [["reply", 1, "first", 7], ["reply", null, "second", 8]]);
});

Deno.test("CommandQueue.settleFirst() gives no reply to a command that was not written", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  queue.push(command("a"), receiver, 1, 0);
  assertEquals(queue.settleFirst("OK"), false);
  assertEquals(receiver.heard, []);
});

Deno.test("CommandQueue.failAll() tells written commands from those that were not", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  queue.push(command("a"), receiver, 1, 0);
  queue.takeUnsent();
  queue.push(command("b"), receiver, 2, 5);
  queue.failAll(UNKNOWN, NOT_SENT);
  assertEquals(receiver.heard, [["failure", "unknown", 1, 0], ["failure", "not sent", 2, 5]]);
  assertEquals([queue.length, queue.unsent], [0, 0]);
});

Deno.test("CommandQueue.failAll() leaves a command that a receiver queues while it is told", () => {
  const queue = new CommandQueue();
  const recorder = new Recorder();
  const requeuing: ReplyReceiver = {
    onReply() {},
    onFailure: () => queue.push(command("again"), recorder, "again", 0),
  };
  queue.push(command("a"), requeuing, 1, 0);
  queue.takeUnsent();
  queue.push(command("b"), requeuing, 2, 0);
  queue.failAll(UNKNOWN, NOT_SENT);
  assertEquals(recorder.heard, []);
  assertEquals([queue.length, queue.unsent], [2, 2]);
  assertEquals(unsentText(queue), "againagain");
});

Deno.test("CommandQueue.settleFirst() lets the receiver queue the next command", () => {
  const queue = new CommandQueue();
  const recorder = new Recorder();
  queue.push(
    command("a"),
    { onReply: () => queue.push(command("b"), recorder, "b", 0), onFailure() {} },
    "a",
    0,
  );
  queue.takeUnsent();
  queue.settleFirst(1);
  assertEquals(unsentText(queue), "b");
  queue.settleFirst(2);
  assertEquals(recorder.heard, [["reply", 2, "b", 0]]);
});

Deno.test("CommandQueue.withdraw() takes out a command that is not written", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  const context = {};
  queue.push(command("a"), receiver, 1, 0);
  queue.push(command("b"), receiver, context, 0);
  queue.push(command("c"), receiver, 3, 0);
  assertEquals(queue.withdraw(context), true);
  assertEquals(unsentText(queue), "ac");
  queue.settleFirst("x");
  queue.settleFirst("y");
  assertEquals(receiver.heard, [["reply", "x", 1, 0], ["reply", "y", 3, 0]]);
});

Deno.test("CommandQueue.withdraw() leaves a command that is written in its place", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  const context = {};
  queue.push(command("a"), receiver, context, 0);
  queue.takeUnsent();
  assertEquals(queue.withdraw(context), false);
  assertEquals(queue.length, 1);
});

Deno.test("CommandQueue.withdraw() of what is not there changes nothing", () => {
  const queue = new CommandQueue();
  queue.push(command("a"), new Recorder(), 1, 0);
  assertEquals(queue.withdraw({}), false);
  assertEquals(unsentText(queue), "a");
});

Deno.test("CommandQueue behaves like a plain list under any sequence of calls", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant("push") },
    { weight: 3, arbitrary: fc.constant("take") },
    { weight: 4, arbitrary: fc.constant("settle") },
    { weight: 1, arbitrary: fc.constant("fail") },
    { weight: 2, arbitrary: fc.nat().map((index) => ({ withdraw: index })) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new CommandQueue();
      const receiver = new Recorder();
      const expected: unknown[][] = [];
      let model: { id: number; sent: boolean }[] = [];
      let next = 0;
      for (const step of steps) {
        if (step === "push") {
          model.push({ id: next, sent: false });
          queue.push(command(`${next};`), receiver, next, next);
          next++;
        } else if (step === "take") {
          const unsent = model.filter(({ sent }) => !sent);
          assertEquals(unsentText(queue), unsent.map(({ id }) => `${id};`).join(""));
          for (const command of unsent) command.sent = true;
        } else if (step === "settle") {
          const due = model[0]?.sent === true;
          assertEquals(queue.settleFirst(next), due);
          if (due) {
            const { id } = model.shift()!;
            expected.push(["reply", next, id, id]);
          }
        } else if (step === "fail") {
          queue.failAll(UNKNOWN, NOT_SENT);
          for (const { id, sent } of model) {
            expected.push(["failure", sent ? "unknown" : "not sent", id, id]);
          }
          model = [];
        } else {
          const index = model.length === 0 ? 0 : step.withdraw % model.length;
          const withdrawn = model[index]?.sent === false;
          assertEquals(queue.withdraw(model[index]?.id ?? -1), withdrawn);
          if (withdrawn) model.splice(index, 1);
        }
        assertEquals(queue.length, model.length);
        assertEquals(queue.unsent, model.filter(({ sent }) => !sent).length);
      }
      assertEquals(receiver.heard, expected);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

Deno.test("CommandQueue.withdraw() leaves room: commands that come and are withdrawn make the ring no longer", () => {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  for (let id = 0; id < 10_000; id++) {
    queue.push(command(`${id};`), receiver, id, 0);
    if (id % 1_000 !== 0) assertEquals(queue.withdraw(id), true);
  }
  assertEquals([queue.length, queue.unsent], [10, 10]);
  assertEquals(unsentText(queue), Array.from({ length: 10 }, (_, i) => `${i * 1_000};`).join(""));
});

/** How long it takes to withdraw `count` commands that wait, in milliseconds, in the order of `contexts`. */
function withdrawMs(count: number, contexts: (count: number) => Iterable<number>): number {
  const queue = new CommandQueue();
  const receiver = new Recorder();
  const bytes = command("x");
  for (let id = 0; id < count; id++) queue.push(bytes, receiver, id, 0);
  const startMs = performance.now();
  for (const id of contexts(count)) queue.withdraw(id);
  return performance.now() - startMs;
}

for (
  const [order, contexts] of [
    ["first to last", (count: number) => Array(count).keys()],
    ["last to first", (count: number) => [...Array(count).keys()].reverse()],
  ] as const
) {
  Deno.test(`CommandQueue.withdraw() takes time in proportion to what is withdrawn, ${order}`, () => {
    // 16 times as many take some 16 times as long; looking through all of them for each would take 256 times as long.
    assertGrowth(80, () => withdrawMs(1_000, contexts), () => withdrawMs(16_000, contexts));
  });
}

Deno.test("CommandQueue keeps no command's context once it is settled", () => {
  const queue = new CommandQueue();
  const heard: unknown[] = [];
  const context = { secret: true };
  queue.push(command("a"), { onReply: (_, told) => heard.push(told), onFailure() {} }, context, 0);
  queue.takeUnsent();
  queue.settleFirst(1);
  assertStrictEquals(heard[0], context);
  assertEquals(queue.withdraw(context), false);
});
