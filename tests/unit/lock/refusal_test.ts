import { assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import { FAILED } from "../../../src/quorum/outcome.ts";
import { LockHeldError, QuorumError } from "../../../src/errors.ts";
import type { RedlockEvent } from "../../../src/events.ts";
import { Cluster, test } from "../../support/cluster.ts";

const DENIED = "0 of 3 nodes granted it, 3 denied, 2 are needed";

// What is in the way

for (
  const [ttlMs, what, remainingMs] of [
    [700, "; its key expires in 501 ms unless it is extended", 501],
    [Infinity, "; its key has no TTL, so no lock library set it", Infinity],
  ] as const
) {
  test(`acquire() that has waited says what the last answers to its ticket said: ${what.slice(2)}`, async (cluster) => {
    cluster.occupy("a", ttlMs);
    const error = await cluster.refusal({ waitMs: 200 });
    assertInstanceOf(error, LockHeldError);
    const { message } = error;
    assertEquals(
      message,
      `Cannot acquire lock "a": someone else holds it; waited 200 ms${what}; ${DENIED}`,
    );
    assertEquals(error.remainingMs, remainingMs);
    assertEquals(cluster.asked("inspect"), [0, 0, 0]);
    const votes = error.votes.map(({ node, outcome }) => `${node} ${outcome}`);
    assertEquals(votes, ["node0 denied", "node1 denied", "node2 denied"]);
  });
}

for (const [way, waitMs] of [["has not waited", 0], ["polled", 200]] as const) {
  test(`acquire() that ${way} asks no node what is in its way`, async (cluster) => {
    cluster.occupy();
    const error = await cluster.refusal({ waitMs, notify: waitMs === 0 });
    assertInstanceOf(error, LockHeldError);
    const waited = waitMs > 0 ? "; waited 200 ms" : "";
    assertEquals(
      error.message,
      `Cannot acquire lock "a": someone else holds it${waited}; ${DENIED}`,
    );
    assertEquals([error.remainingMs, cluster.asked("inspect")], [undefined, [0, 0, 0]]);
  });
}

Deno.test("acquire() counts no votes if its only node has denied", async () => {
  const cluster = new Cluster(1);
  cluster.occupy("a", 700);
  const { message, votes } = await cluster.refusal({ waitMs: 0 }) as LockHeldError;
  assertEquals(message, 'Cannot acquire lock "a": someone else holds it');
  assertEquals(votes.map(({ outcome }) => outcome), ["denied"]);
  await cluster.close();
});

test("acquire() with a waitMs of 0 sends nothing beyond its attempts and what undoes them, and that before its listener can ask", async (cluster) => {
  for (const node of cluster.nodes.slice(0, 2)) node.set("a", "other", 500);
  const undone: number[] = [];
  const onEvent = ({ type }: RedlockEvent) =>
    void (type === "attempt" && undone.push(cluster.asked("release")[2]));
  assertInstanceOf(await cluster.refusal({ waitMs: 0, onEvent }), LockHeldError);
  assertEquals(undone, [1, 2, 3, 4, 5]);
  const repeated = (step: string) => Array(5).fill(step).join(" ");
  assertEquals(cluster.steps, ["acquire", "acquire", "acquire release"].map(repeated));
});

test("acquire() says who is in its way, as far as it knows", async (cluster) => {
  const messageOf = async (waitMs: number, resource: string | string[]) =>
    (await cluster.refusal({ waitMs }, resource)).message;
  cluster.occupy("b", 700, `${"0".repeat(40)}:rs:web 3`);
  assertEquals(
    await messageOf(200, ["b", "c"]),
    'Cannot acquire locks "b", "c": someone else (web 3) holds one of them; waited 200 ms; ' +
      `one of their keys expires in 501 ms unless it is extended; ${DENIED}`,
  );
  cluster.occupy("e", 700, `${"0".repeat(40)}:rs:me`);
  assertMatch(
    (await cluster.refusal({ waitMs: 200, label: "me" }, "e")).message,
    /: this process, or one with its label \(me\), holds it; waited 200 ms;/,
  );
  await cluster.lock({ ttlMs: 10_000 }, "f");
  assertMatch(
    await messageOf(0, ["f", "g"]),
    /: another call of this client has held lock "f" for 0 ms, and locks are not reentrant;/,
  );
  cluster.nodes[0].set("a", "other");
  cluster.set("fail", 1);
  assertEquals(
    await messageOf(0, "a"),
    'Cannot acquire lock "a": others hold it or compete for it; 1 of 3 nodes granted it, 1 denied, ' +
      "1 failed, 2 are needed",
  );
  cluster.set("hang");
  const first = cluster.redlock.acquire("d").catch(() => {});
  assertEquals(
    await messageOf(20, "d"),
    'Cannot acquire lock "d": earlier calls of this client are still waiting for it; waited 20 ms',
  );
  await cluster.close();
  await first;
});

// Locks of one's own

for (
  const [waitMs, resources, name, heldMs, waited] of [
    [0, "a", 'lock "a"', 300, `; ${DENIED}`],
    [200, "a", 'lock "a"', 500, "; waited 200 ms"],
    [0, ["a", "b"], 'locks "a", "b"', 300, `; ${DENIED}`],
    [0, ["a"], 'any of lock "a"', 300, `; ${DENIED}`],
  ] as const
) {
  test(`acquire() of ${name} with a waitMs of ${waitMs} says that its own client holds it, and for how long`, async (cluster) => {
    const any = name.startsWith("any");
    await cluster.lock({ ttlMs: 10_000, any }, resources);
    await cluster.advance(300);
    const error = await cluster.refusal({ waitMs, any }, resources);
    assertInstanceOf(error, LockHeldError);
    assertEquals(
      error.message,
      `Cannot acquire ${name}: another call of this client has held ${
        resources.length > 1 ? "them" : "it"
      } for ${heldMs} ms, and locks are not reentrant${waited}`,
    );
  });
}

// Refused for good

/** Has the nodes refuse for good, or, without a word in a message, for now. */
function refuse(cluster: Cluster, ...messages: string[]): void {
  messages.forEach((message, index) => {
    const permanent = message.startsWith("wrong");
    cluster.nodes[index].instead.acquire = (request, nodeIndex) =>
      request.answer(nodeIndex, FAILED, Object.assign(new Error(message), { permanent }));
  });
}

test("acquire() fails at once if more than N - quorum nodes refuse for good", async (cluster) => {
  refuse(cluster, "not this one", "wrong password", "wrong password too");
  const startMs = cluster.nowMs;
  const error = await cluster.refusal({ waitMs: Infinity });
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 0 of 3 nodes granted it, 3 failed, 2 are needed; waited 0 ms; permanent error: node1: wrong password',
  );
  assertEquals(cluster.nowMs, startMs);
  assertEquals(cluster.eventTypes, ["attempt", "denied"]);
});

test("a client that has used many names still knows the lock that it holds", async (cluster) => {
  await cluster.lock();
  for (let name = 0; name < 40; name++) {
    await cluster.settle((await cluster.lock({}, `${name}`)).release());
  }
  const { message } = await cluster.refusal({ waitMs: 10 });
  assertMatch(message, /another call of this client has held it/);
});
