import { assertEquals } from "@std/assert";
import { inspect } from "node:util";
import { Lock } from "../../src/lock/lock.ts";
import { RedisClient } from "../../src/redis/client.ts";
import { Redlock } from "../../src/redlock.ts";
import { locked, test, VALIDITY_MS } from "../support/cluster.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FakeNetwork } from "../support/fake_transport.ts";

/** What each runtime's `console.log` makes of a value; Bun calls the same method as Node. */
const CONSOLES = {
  Deno: (value: unknown) => Deno.inspect(value, { breakLength: Infinity, depth: 5 }),
  Node: (value: unknown) => inspect(value, { breakLength: Infinity, depth: 5, compact: true }),
};

/** A text without line breaks, and with one kind of quotes. */
function flat(text: string): string {
  return text.replaceAll(/\s+/gu, " ").replaceAll("'", '"').replaceAll(/,? \}/gu, " }");
}

for (const [runtime, show] of Object.entries(CONSOLES)) {
  test.locked(`console.log of a Lock in ${runtime} shows its state and no value`, async ({ cluster, lock }) => {
    await cluster.clock.advance(10);
    const nodes = '{ node0: "granted", node1: "granted", node2: "granted" }';
    const view = (state: string, remainingMs: number, { holder } = lock) =>
      `Lock { resources: [ "a" ], state: "${state}", holder: "${holder}", remainingMs: ${remainingMs}, ` +
      `extensions: 0, nodes: ${nodes} }`;
    const held = flat(show(lock));
    assertEquals(held, view("held", VALIDITY_MS - 10));
    assertEquals(held.includes(lock.value), false);
    cluster.clock.block(VALIDITY_MS);
    assertEquals(flat(show(lock)), view("lost", 0)); // before any timer could end it
    await runMicrotasks();
    const other = await cluster.settle(cluster.redlock.acquire("b"));
    await cluster.settle(other.release());
    assertEquals(flat(show(other)), view("released", 0, other).replace('"a"', '"b"'));
    await cluster.close();
    assertEquals(flat(show(lock)), view("lost", 0));
  });

  Deno.test(`console.log of a Redlock in ${runtime} shows its state and its nodes`, async () => {
    const { cluster } = await locked();
    const view = (state: string) =>
      `Redlock { state: "${state}", nodes: [ "node0", "node1", "node2" ], quorum: 2 }`;
    assertEquals(flat(show(cluster.redlock)), view("open"));
    await cluster.close();
    assertEquals(flat(show(cluster.redlock)), view("closed"));
  });

  Deno.test(`console.log of a RedisClient in ${runtime} shows its state and no credentials`, async () => {
    const network = new FakeNetwork();
    const client = new RedisClient("redis://user:hunter2@h/1", { connect: network.connect });
    const view = (state: string) =>
      `RedisClient { address: "redis://h:6379/1", state: "${state}" }`;
    assertEquals(flat(show(client)), view("new"));
    const sent = client.send(["PING"]);
    assertEquals(flat(show(client)), view("connecting"));
    await runMicrotasks();
    network.last.feed("+OK\r\n+OK\r\n");
    await runMicrotasks();
    assertEquals(flat(show(client)), view("open"));
    network.last.feed("+PONG\r\n");
    await sent;
    await client.close();
    assertEquals(flat(show(client)), view("closed"));
  });

  Deno.test(`console.log of a prototype in ${runtime} does not throw`, () => {
    for (const { prototype } of [Lock, Redlock, RedisClient]) assertEquals(show(prototype), "{}");
  });
}

test.locked("console.log in Node shows the name alone of a Lock deeper than its depth", ({ lock }) => {
  const view = Reflect.get(lock, Symbol.for("nodejs.util.inspect.custom")) as (
    ...args: unknown[]
  ) => string;
  assertEquals(view.call(lock, -1, {}, inspect), "[Lock]");
});
