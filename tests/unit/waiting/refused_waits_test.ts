import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { type LockHeldError, QuorumError } from "../../../src/errors.ts";
import { Callers, held } from "../../support/callers.ts";

// Errors of calls whose turn never came

Deno.test("a call that gives up behind its own client's lock has no votes", async () => {
  const callers = await held();
  callers.call("second", { waitMs: 100 });
  await callers.advance(100);
  const error = callers.error<LockHeldError>("second");
  assertEquals(
    error.message,
    'Cannot acquire lock "a": another call of this client has held it for 100 ms, and locks are not reentrant; waited 100 ms',
  );
  assertEquals([error.votes, error.cause, error.waiters], [[], undefined, undefined]);
  const denied = callers.events.at(-1);
  assert(denied?.type === "denied");
  assertEquals([denied.reason, denied.attempts, denied.elapsedMs], ["held", 0, 100]);
});

Deno.test("a call that gives up behind other calls has no quorum if their last attempt was not answered", async () => {
  const callers = new Callers({ retryDelayMs: 10_000 });
  callers.set("fail", 0, 1);
  callers.fraction = 0.99;
  callers.call("first");
  callers.call("second", { waitMs: 100 });
  await callers.advance(100);
  const error = callers.error<QuorumError>("second");
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 1 of 3 nodes granted it, 2 failed, 2 are needed; waited 100 ms; first error: node0 is down',
  );
  assertInstanceOf(error.cause, AggregateError);
  const denied = callers.events.at(-1);
  assert(denied?.type === "denied");
  assertEquals([denied.reason, denied.attempts], ["no-quorum", 0]);
});

Deno.test("LockHeldError.waiters is the length of the longest queue that a node reported last, and missing for a call that polls", async () => {
  const callers = new Callers();
  callers.occupy();
  for (const node of callers.nodes) node.enqueue("a", "other:1");
  callers.nodes[1].enqueue("a", "other:2");
  callers.call("first", { waitMs: 500 });
  callers.call("second", { waitMs: 400 });
  await callers.advance(500);
  for (const who of ["first", "second"]) {
    assertEquals(callers.error<LockHeldError>(who).waiters, 3, who);
  }
  callers.call("polls", { waitMs: 500, notify: false });
  await callers.advance(500);
  callers.call("polls from now on", { waitMs: 5_000 });
  await callers.advance(500);
  for (const node of callers.nodes.slice(1)) node.cut();
  await callers.advance(5_000);
  for (const who of ["polls", "polls from now on"]) {
    assertEquals(callers.error<LockHeldError>(who).waiters, undefined, who);
  }
});

// Events
