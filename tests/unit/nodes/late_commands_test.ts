import { assertEquals, assertLess } from "@std/assert";
import { undoAttempt } from "../../../src/lock/release.ts";
import type { SubscribeChannel } from "../../../src/nodes/mod.ts";
import type { QuorumNode } from "../../../src/quorum/quorum_node.ts";
import { createNodeSet } from "../../support/node_set.ts";
import { Round } from "../../../src/quorum/round.ts";
import { ConnectionError } from "../../../src/redis/mod.ts";
import type { MemoryRedis } from "../../../src/testing/mod.ts";
import { systemClock } from "../../../src/time/clock.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import {
  eventually,
  outcomeOf,
  pause,
  sentBy,
  test,
  withCommandNode,
} from "../../support/command_node_bench.ts";
import type { FakeClient } from "../../support/fake_client.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { askOn } from "../../support/memory_bench.ts";
import { SeededRandom } from "../../simulation/support/seeded_random.ts";

/** Longer than `eventually` waits. */
const TTL_MS = 120_000;

function ask(node: QuorumNode, method: "acquire" | "release", keys: string | string[] = "k") {
  const request = new FakeRequest(keys, { ttlMs: TTL_MS });
  node.ask(method, request, 0);
  return request;
}

/** Fails if the client is given such a command after a while, of so many milliseconds. */
async function ends(name: string, client: FakeClient, ms: number): Promise<void> {
  await pause(ms);
  const { length } = client.named(name);
  await pause(ms);
  assertEquals(client.named(name).length, length);
}

Deno.test("commandNode() undoes an acquisition again that is executed after its undo", async () => {
  for (const keys of ["k", ["k", "l"]]) {
    await withCommandNode({}, async (client, node) => {
      const gate = Promise.withResolvers<void>();
      const others = Array.from({ length: 4_096 }, (_, index) => `${index}`); // a client's most
      client.fate = () => client.sent.length <= 4_097 ? { after: gate.promise, loses: true } : {};
      for (const value of others) node.ask("acquire", new FakeRequest(value, { value }), 0);
      const acquisition = ask(node, "acquire", keys);
      assertEquals(await outcomeOf(acquisition), "failed");
      const undo = ask(node, "release", keys);
      undo.set = true;
      await outcomeOf(undo);
      await eventually(() => client.sent.filter((args) => args.includes("v")).length >= 3);
      gate.resolve(); // only now does the server execute the acquisition
      await eventually(async () => await client.value("k") === "v");
      await eventually(async () => await client.value("k") === null);
      await ends("EVAL", client, TTL_MS);
    });
  }
});

test("commandNode() gives the former value back to a key that an adoption takes after its undo", async ({ client, node }) => {
  const gate = Promise.withResolvers<void>();
  await client.send(["SET", "k", "former"]);
  client.fate = () => client.sent.length === 2 ? { after: gate.promise, loses: true } : {};
  const request = () => new FakeRequest("k", { ttlMs: TTL_MS, replaces: "former" });
  const adoption = request();
  node.ask("adopt", adoption, 0);
  assertEquals(await outcomeOf(adoption), "failed");
  const undo = request();
  undo.set = true;
  node.ask("release", undo, 0);
  await eventually(() => client.sent.filter((args) => args.includes("v")).length >= 3);
  gate.resolve(); // only now does the server execute the adoption
  await eventually(async () => await client.value("k") === "v");
  await eventually(async () => await client.value("k") !== "v");
  assertEquals(await client.value("k"), "former");
});

test("commandNode() shortens a key by the time that is left when the command is sent, however long it has waited", async ({ client, node }) => {
  client.fate = ([name]) => name === "SET" ? { after: pause(10) } : {};
  const untilMs = systemClock.monotonicMs() + 1_000;
  const keptMs = () => untilMs - systemClock.monotonicMs();
  ask(node, "acquire");
  node.ask("release", new FakeRequest("k", { ttlMs: TTL_MS, keptMs }), 0);
  await eventually(() => client.named("EVAL").length > 0);
  assertLess(Number(client.named("EVAL")[0].at(-1)), 995);
});

test("commandNode() takes its client's word that nothing was sent for no proof that nothing was set: it may have sent it before", async ({ client, node }) => {
  const details = { address: "b", outcome: "not-sent", cause: undefined } as const;
  const error = new ConnectionError("the second copy found no connection", details);
  client.fate = ([name]) => name === "SET" ? { error } : {};
  const wheel = new TimerWheel();
  const nodeSet = createNodeSet(wheel, [node]);
  const attempt = new Round(nodeSet, ["k"], "v", TTL_MS);
  await attempt.ask("acquire", 1_000);
  assertEquals(await client.value("k"), "v");
  undoAttempt(attempt);
  await eventually(async () => await client.value("k") === null);
  wheel.close();
});

/**
 * What a client returns for an acquisition that a gateway gave up on, and the end of the message
 * that it becomes.
 */
const GIVEN_UP: readonly [returned: unknown, message: string][] = [
  [new Error("connection reset"), "connection reset"],
  [undefined, "the client returned undefined"],
  [{ message: "Endpoint request timed out" }, "Endpoint request timed out"],
];

for (const way of ["send", "pipeline"] as const) {
  for (const [returned, message] of GIVEN_UP) {
    Deno.test(`commandNode() undoes an acquisition again whose answer in ${way} was '${message}' and that is executed after its undo`, async () => {
      const gate = Promise.withResolvers<void>();
      let late: Promise<unknown> | undefined;
      const sendBy = (client: FakeClient) => (args: string[]) => {
        if (late || args[0] !== "SET") return client.send(args);
        late = gate.promise.then(() => client.send(args));
        return Promise.resolve(returned);
      };
      await withCommandNode((client) => sentBy(way, sendBy(client)), async (client, node) => {
        const [acquisition, undo] = [ask(node, "acquire"), ask(node, "release")];
        const other = ask(node, "acquire", "l");
        undo.set = true;
        assertEquals(await outcomeOf(acquisition), "failed");
        assertEquals(acquisition.errors[0].message, `Cannot get reply from a: ${message}`);
        assertEquals([await outcomeOf(undo), await outcomeOf(other)], ["denied", "granted"]);
        gate.resolve(); // only now does the server execute the acquisition
        await late;
        await eventually(async () => await client.value("k") === null);
      });
    });
  }
}

test("commandNode() undoes an acquisition at once when its answer comes late, also if it was sent again and was lost", async ({ client, node }) => {
  const gate = Promise.withResolvers<void>();
  const fates = [{ after: gate.promise }, { times: 0, loses: true }];
  client.fate = ([name]) => name === "SET" ? fates[client.named("SET").length - 1] : {};
  for (const count of [1, 2]) {
    assertEquals(await outcomeOf(ask(node, "acquire")), "failed");
    assertEquals(client.named("SET").length, count);
    await pause(500); // the node is back
  }
  const undo = ask(node, "release");
  undo.set = true;
  await eventually(() => client.named("EVAL").length > 0);
  await pause(4_000); // releases are repeated seconds later now
  gate.resolve();
  await pause(500);
  assertEquals(await client.value("k"), null);
});

Deno.test("commandNode() takes a place in the queue for no proof that nothing was set if the client resends", async () => {
  let server: MemoryRedis | undefined;
  const subscribe: SubscribeChannel = (channel, { onMessage }) => {
    askOn(server!.session({ onMessage: () => onMessage("") }), "SUBSCRIBE", channel);
    return Promise.resolve(() => {});
  };
  await withCommandNode({ subscribe }, async (client, node) => {
    server = client.server;
    const subscribed = Promise.withResolvers<void>();
    const nothing = () => {};
    node.subscribe!({
      id: "me",
      onSubscribed: () => subscribed.resolve(),
      onUnsubscribed: nothing,
      onRefused: nothing,
      onQueueMessage: nothing,
    }, 0);
    await subscribed.promise;
    // the second copy is denied because of the first
    client.fate = ([name]) => name === "EVAL" ? { times: 2 } : {};
    const wheel = new TimerWheel();
    const ticket = {
      ticketId: "me:1",
      agreed: false,
      score: 1,
      onEnqueued: nothing,
      onPutBack: nothing,
    };
    const round = new Round(createNodeSet(wheel, [node]), ["k"], "v", TTL_MS, { ticket });
    await round.ask("acquire", 5_000);
    assertEquals([round.queuedBy(0), await client.value("k")], [true, "v"]);
    undoAttempt(round);
    await eventually(async () => await client.value("k") === null);
    wheel.close();
  });
});

test("commandNode() fails at once while it is down, and finds out when it is back", async ({ client, node }) => {
  client.fate = () => ({ times: 0, loses: true });
  const hung = ask(node, "acquire");
  const waiting = ask(node, "release");
  waiting.set = true;
  assertEquals(await outcomeOf(hung), "failed");
  assertEquals(hung.errors[0].message, "Cannot get reply from a: no reply within 20 ms");
  const why = "Cannot get reply from a: no reply within 20 ms (it counts as down until it answers)";
  assertEquals(waiting.errors[0].message, why);
  const sent = client.sent.length;
  const refused = ask(node, "acquire", "l");
  assertEquals([refused.answers.length, refused.unsent, client.sent.length], [1, true, sent]);
  assertEquals(refused.errors[0].message, why);
  await pause(5_000);
  assertLess(60, client.named("PING").length); // the next when one has timed out, 50 ms later at most
  client.fate = () => ({});
  await eventually(() => client.named("EVAL").length > 0); // the release that is still due
  await eventually(async () => await outcomeOf(ask(node, "acquire", "l")) !== "failed");
  await ends("PING", client, 1_000);
});

test("commandNode() is not down because of one time-out if its server has answered since", async ({ client, node }) => {
  client.fate = ([, key]) => ({ loses: key === "k" });
  const lost = ask(node, "acquire");
  await pause(10);
  assertEquals(await outcomeOf(ask(node, "acquire", "l")), "granted");
  assertEquals(await outcomeOf(lost), "failed");
  assertEquals(await outcomeOf(ask(node, "acquire", "m")), "granted");
});

test("commandNode() is down after two failures in a row, not after one", async ({ client, node }) => {
  client.fate = () => ({ times: 0, error: new Error("broken") });
  assertEquals(await outcomeOf(ask(node, "acquire")), "failed");
  const second = ask(node, "acquire", "l");
  await outcomeOf(second);
  assertEquals(second.errors[0].message, "Cannot get reply from a: broken");
  const third = ask(node, "acquire", "m");
  await outcomeOf(third);
  assertEquals((third.errors[0].cause as Error).message, "broken");
  const why = "Cannot get reply from a: broken (it counts as down until it answers)";
  assertEquals(third.errors[0].message, why);
});

test("commandNode() is back with its client, for the next command and not for the next probe", async ({ client, node }) => {
  for (const outageMs of [100, 1_000, 10_000]) {
    client.fate = () => ({ times: 0, error: new Error("broken") });
    for (const key of ["k", "l", "m"]) {
      assertEquals(await outcomeOf(ask(node, "acquire", key)), "failed");
    }
    await pause(outageMs);
    client.fate = () => ({});
    const next = ask(node, "acquire", `after ${outageMs}`);
    assertEquals(await outcomeOf(next), "granted", String(next.errors[0]));
  }
  assertLess(client.named("PING").length, 50);
});

test("commandNode() is back when a late answer comes", async ({ client, node }) => {
  const gate = Promise.withResolvers<void>();
  client.fate = ([name]) => name === "PING" ? { loses: true } : { after: gate.promise };
  assertEquals(await outcomeOf(ask(node, "acquire")), "failed");
  await pause(1_000);
  assertEquals(await outcomeOf(ask(node, "acquire", "l")), "failed");
  gate.resolve();
  await eventually(async () => await outcomeOf(ask(node, "acquire", "l")) === "granted");
});

test("commandNode() goes on with every key behind a time-out, when the server is back", async ({ client, node }) => {
  let hangs = true;
  client.fate = () => hangs ? { times: 0, loses: true } : {};
  const waiting = [];
  for (const keys of [["k"], ["k", "l"], ["l", "m"], ["m"]]) {
    waiting.push(ask(node, "acquire", keys));
    await Promise.resolve().then(() => {}); // a tick of its own
  }
  for (const request of waiting) assertEquals(await outcomeOf(request), "failed");
  assertEquals(client.sent.filter(([name]) => name !== "PING").length, 1);
  hangs = false;
  for (const key of ["k", "l", "m"]) {
    await eventually(async () => await outcomeOf(ask(node, "acquire", key)) !== "failed");
  }
});

for (const way of ["send", "pipeline"] as const) {
  Deno.test(`commandNode() sends by ${way} what undoes others before it is closed, also if they are not answered yet`, async () => {
    const slow = (client: FakeClient) => async (args: string[]) => {
      const reply = client.send(args);
      if (args[0] === "SET" && args[1] !== "late") await pause(600); // executed at once
      return await reply;
    };
    const options = (client: FakeClient) => ({ ...sentBy(way, slow(client)), timeoutMs: 60_000 });
    await withCommandNode(options, async (client, node) => {
      client.fate = ([name, key]) => name === "SET" && key === "late" ? { after: pause(100) } : {};
      await outcomeOf(ask(node, "release")); // from now on the server knows the script
      ask(node, "acquire", "late");
      await Promise.resolve().then(() => {}); // a tick of its own
      const undos = [ask(node, "release", "late")];
      for (const key of ["k", "l", "m"]) ask(node, "acquire", key);
      undos.push(ask(node, "release", "k")); // in the same tick, and in the next one
      await Promise.resolve().then(() => {});
      undos.push(ask(node, "release", ["l", "m"]));
      await eventually(async () => await client.value("m") === "v");
      const startMs = systemClock.monotonicMs();
      await node.close!();
      assertLess(systemClock.monotonicMs() - startMs, 1_000);
      for (const key of ["late", "k", "l", "m"]) {
        assertEquals([key, await client.value(key)], [key, null]);
      }
      const [early, , held] = undos; // the other is in one piece with what it undoes
      assertEquals([early.outcomes, held.outcomes], [["granted"], ["granted"]]);
      const { length } = client.sent;
      assertEquals(await outcomeOf(ask(node, "release")), "failed");
      await pause(1_000); // until no answer is due
      assertEquals(client.sent.length, length);
    });
  });

  Deno.test(`commandNode() sends by ${way} a release again before it is closed whose script the server has forgotten`, async () => {
    await withCommandNode(({ send }) => sentBy(way, send), async (client, node) => {
      for (const key of ["k", "l"]) {
        assertEquals(await outcomeOf(ask(node, "acquire", key)), "granted");
      }
      assertEquals(await outcomeOf(ask(node, "release", "k")), "granted");
      await client.send(["SCRIPT", "FLUSH"]);
      const release = ask(node, "release", "l");
      const startMs = systemClock.monotonicMs();
      await node.close!();
      await node.close!(); // with nothing under way
      assertLess(systemClock.monotonicMs() - startMs, 100);
      assertEquals([release.outcomes, await client.value("l")], [["granted"], null]);
    });
  });
}

Deno.test("commandNode() leaves no key behind, whatever the client does to commands", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = new SeededRandom(seed);
    const chance = (share: number) => random.fraction() < share;
    const delays: Promise<void>[] = [];
    await withCommandNode({ timeoutMs: 15, resends: true }, async (client, node) => {
      client.fate = () => {
        const after = pause(random.fraction() * 40);
        delays.push(after);
        const times = chance(0.2) ? 2 : chance(0.1) ? 0 : 1;
        const error = chance(0.1) ? new Error("connection reset") : undefined;
        return { times, loses: times === 0 || chance(0.1), error, after };
      };
      const attempts = Array.from({ length: 12 }, (_, number) => {
        const request = (value: string) => {
          return new FakeRequest(`k${number % 3}`, { value, ttlMs: TTL_MS });
        };
        const acquisition = request(`v${number}`);
        node.ask("acquire", acquisition, 0);
        return { acquisition, undo: request(`v${number}`) };
      });
      for (const { acquisition, undo } of attempts) {
        await eventually(() => acquisition.answers.length > 0);
        acquisition.wanted = false;
        undo.set = !acquisition.unsent;
        node.ask("release", undo, 0); // also if it denied, because it resends
      }
      client.fate = () => ({});
      for (const key of ["k0", "k1", "k2"]) {
        await eventually(async () => await client.value(key) === null);
      }
      await Promise.all(delays);
    });
  }
});
