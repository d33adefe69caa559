import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import {
  acquireOperation,
  type Call,
  encodeAcquire,
  encodeAcquireOrWait,
  encodeExtend,
  encodeLeave,
  encodeOperation,
  encodeRaise,
  encodeRelease,
  isAcquire,
  OPERATION,
  scriptOf,
} from "../../../src/redis_node/commands.ts";
import type { QueuePriority, QueueTicket } from "../../../src/quorum/queue_ticket.ts";
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "../../../src/redis_node/scripts/fencing.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { LEAVE } from "../../../src/redis_node/scripts/queue.ts";
import { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";

const CALLS: readonly Call[] = ["EVALSHA", "EVAL"];

const ENTRY = "client:1";
const SCORE = "1700000000000000";

function ticket(priority: QueuePriority = "in-order"): QueueTicket {
  return { ticketId: ENTRY, priority, score: Number(SCORE), onEnqueued() {} };
}

/** A call of a script as it stands on the wire. */
function called(call: Call, { source, sha1 }: Script, ...words: string[]): string {
  return wire(call, call === "EVAL" ? source : sha1, ...words);
}

/** What is encoded, as text. */
function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Sets of keys. The scripts make the names of queues and counters. */
const KEYS: readonly (readonly string[])[] = [
  ["k"],
  ["é𝄞 \r\n"],
  ["{user}:42"],
  ["{}:42"],
  ["k", "l"],
  ["ü", "{t}1", "k"],
];

for (const keys of KEYS) {
  const what = JSON.stringify(keys);
  const request = new FakeRequest(keys);
  const fenced = Object.assign(new FakeRequest(keys), { counterFloor: 77 });
  const count = String(keys.length);
  const releases = keys.length > 1 ? RELEASE_QUEUED : RELEASE;
  const whole = { keys, value: "v" };

  for (const call of CALLS) {
    Deno.test(`encodeAcquire() of ${what} by ${call} is ${keys.length > 1 ? "the script" : "SET"}`, () => {
      const expected = keys.length > 1
        ? called(call, ACQUIRE_ALL, count, ...keys, "v", "1000")
        : wire("SET", keys[0], "v", "NX", "PX", "1000");
      assertEquals(text(encodeAcquire(request, call)), expected);
    });

    Deno.test(`encodeExtend() of ${what} by ${call} names the keys, the value and the TTL`, () => {
      const expected = called(call, EXTEND, count, ...keys, "v", "1000");
      assertEquals(text(encodeExtend(request, call)), expected);
    });

    Deno.test(`encodeRelease() of ${what} by ${call} names the keys and the value`, () => {
      assertEquals(
        text(encodeRelease(whole, call)),
        called(call, releases, count, ...keys, "v"),
      );
    });

    for (
      const [keepsTicket, score] of [[undefined, []], [false, []], [true, [SCORE]]] as const
    ) {
      Deno.test(`encodeRelease() of ${what} by ${call} names the ticket of who waited for it, where keepsTicket is ${keepsTicket}`, () => {
        assertEquals(
          text(encodeRelease({ ...whole, ticket: ticket(), keepsTicket }, call)),
          called(call, RELEASE_QUEUED, count, ...keys, "v", ENTRY, ...score),
        );
      });
    }

    Deno.test(`encodeRelease() of ${what} by ${call} without a ticket names none`, () => {
      assertEquals(
        text(encodeRelease({ ...whole, keepsTicket: true }, call)),
        called(call, releases, count, ...keys, "v"),
      );
    });

    Deno.test(`encodeAcquireOrWait() of ${what} by ${call} names the keys, the entry and the claim`, () => {
      assertEquals(
        text(encodeAcquireOrWait(request, ticket(), call)),
        called(call, ACQUIRE_OR_WAIT, count, ...keys, "v", "1000", ENTRY, "0", SCORE),
      );
    });

    Deno.test(`encodeAcquire() of ${what} by ${call} with a hint is a script that counts`, () => {
      const expected = keys.length > 1
        ? called(call, ACQUIRE_FENCED, count, ...keys, "v", "1000", "", "1", "", "77")
        : called(call, ACQUIRE_COUNTED, "1", keys[0], "v", "1000", "77");
      assertEquals(text(encodeAcquire(fenced, call)), expected);
    });

    Deno.test(`encodeAcquireOrWait() of ${what} by ${call} with a hint is a script that counts`, () => {
      assertEquals(
        text(encodeAcquireOrWait(fenced, ticket("overdue"), call)),
        called(call, ACQUIRE_FENCED, count, ...keys, "v", "1000", ENTRY, "1", SCORE, "77"),
      );
    });

    Deno.test(`encodeExtend() of ${what} by ${call} names no token`, () => {
      assertEquals(encodeExtend(fenced, call), encodeExtend(request, call));
    });

    Deno.test(`encodeRaise() of ${what} by ${call} names the keys, the value and the token`, () => {
      const expected = called(call, RAISE, count, ...keys, "v", "77");
      assertEquals(text(encodeRaise(fenced, call)), expected);
    });

    Deno.test(`encodeRelease() of ${what} by ${call} tells of no token`, () => {
      assertEquals(encodeRelease(fenced, call), encodeRelease(request, call));
    });

    Deno.test(`encodeLeave() of ${what} by ${call} names the keys and the entry`, () => {
      assertEquals(
        text(encodeLeave({ keys, ticketId: ENTRY }, call)),
        called(call, LEAVE, count, ...keys, ENTRY),
      );
    });
  }

  Deno.test(`the commands about ${what} call scripts by name unless told otherwise`, () => {
    assertEquals(encodeAcquire(request), encodeAcquire(request, "EVALSHA"));
    assertEquals(encodeExtend(request), encodeExtend(request, "EVALSHA"));
    assertEquals(encodeRelease(whole), encodeRelease(whole, "EVALSHA"));
    assertEquals(encodeAcquire(fenced), encodeAcquire(fenced, "EVALSHA"));
    assertEquals(encodeExtend(fenced), encodeExtend(fenced, "EVALSHA"));
    assertEquals(encodeRaise(fenced), encodeRaise(fenced, "EVALSHA"));
    const leave = { keys, ticketId: "a:1" };
    assertEquals(encodeLeave(leave), encodeLeave(leave, "EVALSHA"));
    assertEquals(
      encodeAcquireOrWait(request, ticket()),
      encodeAcquireOrWait(request, ticket(), "EVALSHA"),
    );
  });
}

for (const [priority, word] of [["in-order", "0"], ["overdue", "1"]] as const) {
  Deno.test(`encodeAcquireOrWait() names the priority "${priority}" by ${word}`, () => {
    const request = new FakeRequest("k", "value");
    request.ttlMs = 30_000;
    const words = ["1", "k", "value", "30000", ENTRY, word, SCORE];
    assertEquals(
      text(encodeAcquireOrWait(request, ticket(priority))),
      called("EVALSHA", ACQUIRE_OR_WAIT, ...words),
    );
  });
}

Deno.test("the commands about one key have room for whatever it is made of", () => {
  // Each character takes the most bytes that one can.
  for (const key of ["\uffff", "\uffff".repeat(30_000)]) {
    const value = "\uffff".repeat(40);
    const request = Object.assign(new FakeRequest(key, value), { ttlMs: Number.MAX_SAFE_INTEGER });
    const ttl = "9007199254740991";
    assertEquals(text(encodeAcquire(request)), wire("SET", key, value, "NX", "PX", ttl));
    assertEquals(
      text(encodeExtend(request)),
      called("EVALSHA", EXTEND, "1", key, value, ttl),
    );
    assertEquals(
      text(encodeRelease(request)),
      called("EVALSHA", RELEASE, "1", key, value),
    );
    const fenced = Object.assign(new FakeRequest(key, value), {
      ttlMs: Number.MAX_SAFE_INTEGER,
      counterFloor: Number.MAX_SAFE_INTEGER,
    });
    assertEquals(
      text(encodeAcquire(fenced)),
      called("EVALSHA", ACQUIRE_COUNTED, "1", key, value, ttl, ttl),
    );
  }
});

Deno.test("the commands about one key lie side by side, so that they go out in one piece", () => {
  const request = new FakeRequest();
  encodeAcquire(request); // where a slab is full the next is begun
  const commands = [encodeAcquire(request), encodeExtend(request), encodeRelease(request)];
  commands.slice(1).forEach((command, index) => {
    const before = commands[index];
    assertStrictEquals(command.buffer, before.buffer);
    assertEquals(command.byteOffset, before.byteOffset + before.length);
  });
});

// Operations

for (
  const [what, keys, counterFloor, queues, operation, script] of [
    ["one key", ["k"], undefined, false, OPERATION.set, undefined],
    ["two keys", ["k", "l"], undefined, false, OPERATION.acquire, ACQUIRE_ALL],
    ["one key with a token", ["k"], 77, false, OPERATION.count, ACQUIRE_COUNTED],
    ["two keys with a token", ["k", "l"], 77, false, OPERATION.count, ACQUIRE_FENCED],
    ["one key in the queue", ["k"], undefined, true, OPERATION.queue, ACQUIRE_OR_WAIT],
    ["two keys in the queue", ["k", "l"], undefined, true, OPERATION.queue, ACQUIRE_OR_WAIT],
    ["one key in the queue with a token", ["k"], 77, true, OPERATION.queueCount, ACQUIRE_FENCED],
  ] as const
) {
  Deno.test(`acquireOperation() of ${what} is the one whose script is sent`, () => {
    const request = Object.assign(new FakeRequest(keys), { counterFloor, ticket: ticket() });
    assertEquals(acquireOperation(request, queues), operation);
    assert(isAcquire(operation));
    assertEquals(scriptOf(operation, request), script);
    const sent = text(encodeOperation(operation, request, "EVAL"));
    assertEquals(sent.includes("EVAL"), script !== undefined);
    if (script) assert(sent.includes(script.source));
  });
}

for (
  const [name, operation, script] of [
    ["extend", OPERATION.extend, EXTEND],
    ["raise", OPERATION.raise, RAISE],
    ["release", OPERATION.release, RELEASE],
    ["pendingRelease", OPERATION.pendingRelease, RELEASE],
    ["leave", OPERATION.leave, LEAVE],
  ] as const
) {
  Deno.test(`encodeOperation() of ${name} sends the script that scriptOf() names`, () => {
    const content = Object.assign(new FakeRequest(), { counterFloor: 77, ticketId: ENTRY });
    assert(!isAcquire(operation));
    assertEquals(scriptOf(operation, content), script);
    assert(text(encodeOperation(operation, content, "EVAL")).includes(script.source));
    assert(text(encodeOperation(operation, content, "EVALSHA")).includes(script.sha1));
  });
}

Deno.test("scriptOf() of a release with a ticket, or of several keys, is the one that knows queues", () => {
  for (const operation of [OPERATION.release, OPERATION.pendingRelease]) {
    const keys = ["k"];
    assertEquals(scriptOf(operation, { keys }), RELEASE);
    assertEquals(scriptOf(operation, { keys, ticket: ticket() }), RELEASE_QUEUED);
    assertEquals(scriptOf(operation, { keys: ["k", "l"] }), RELEASE_QUEUED);
  }
});
