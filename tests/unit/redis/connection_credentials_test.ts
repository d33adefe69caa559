import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { type ClientOptions, connect } from "../../../src/redis/client.ts";
import { test } from "../../support/connection_bench.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeNetwork, PING, wire } from "../../support/fake_transport.ts";
import { NAME } from "../../support/stream_bench.ts";

type Get = NonNullable<ClientOptions["credentials"]>;

test("Connection asks for the credentials at each login, by the name of the server, in place of the address's", async (bench) => {
  const asked: string[] = [];
  const credentials: Get = (name) => {
    asked.push(name);
    return asked.length === 1
      ? { password: "token1" }
      : Promise.resolve({ username: "locker", password: `token${asked.length}` });
  };
  bench.use({ credentials }, "redis://old:hunter2@h");
  await bench.submit(1);
  assertEquals(bench.written, wire("AUTH", "token1") + PING);
  await bench.feed("+OK\r\n+PONG\r\n");
  for (const count of [2, 3]) {
    await bench.advance(2_000);
    await bench.hangUp();
    await bench.nextStream();
    assertEquals(bench.written, wire("AUTH", "locker", `token${count}`) + PING);
    await bench.feed("+OK\r\n+PONG\r\n");
  }
  assertEquals(asked, [NAME, NAME, NAME]);
});

test("Connection shows none of the credentials that it was given last", async (bench) => {
  bench.use({ credentials: () => ({ username: "locker", password: "s3cret!" }) });
  await bench.submit(1);
  await bench.feed("-ERR locker has not s3cret!\r\n");
  const [, message] = bench.replies[0];
  assertEquals(message, `Connection to ${NAME} was refused: ERR *** has not ***`);
  await bench.hangUp();
  await bench.submit(2);
  assertEquals(bench.replies[1][1], message);
  assertEquals(bench.connection.password, "s3cret!");
});

const reason = new Error("the service is closed today");
for (
  const [what, credentials, why, cause] of [
    [
      "throws",
      () => {
        throw reason;
      },
      reason.message,
      reason,
    ],
    ["rejects", () => Promise.reject(reason), reason.message, reason],
    ...[undefined, null, "s3cret", {}, { password: 5 }, { username: 5, password: "s3cret" }].map((
      value,
    ) =>
      [
        `returns ${JSON.stringify(value)}`,
        () => value as unknown as { password: string },
        "'credentials' must return { username?, password } with strings",
        undefined,
      ] as const
    ),
  ] as const
) {
  test(`Connection could not be made, and is tried again, if the function for the credentials ${what}`, async (bench) => {
    bench.use({ credentials: credentials as Get });
    await bench.submit(1);
    const message = `Connection to ${NAME} could not be made: ${why}`;
    assertEquals(bench.replies, [[1, message, "not-sent"]]);
    if (cause) assertStrictEquals(bench.errors[0].cause, cause);
    assertEquals(bench.network.targets, []);
    bench.queue(2);
    assertEquals(bench.replies.length, 2);
  });
}

test("Connection waits for credentials for connectTimeoutMs, and does nothing with those that come later", async (bench) => {
  const waiting: ((credentials: { password: string }) => void)[] = [];
  bench.use({ credentials: () => new Promise((resolve) => waiting.push(resolve)) }, "rediss://h");
  await bench.submit(1);
  await bench.advance(1_100);
  const name = NAME.replace("redis", "rediss");
  const message = `Connection to ${name} could not be made: no credentials within 1000 ms`;
  assertEquals(bench.replies, [[1, message, "not-sent"]]);
  bench.network.mode = "wait";
  await bench.advance(100);
  assertEquals(waiting.length, 2);
  waiting[1]({ password: "in time" });
  await runMicrotasks();
  waiting[0]({ password: "late" }); // while the next connection is being made
  await runMicrotasks();
  bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals([bench.written, bench.network.targets.length], [wire("AUTH", "in time") + PING, 1]);
  await bench.advance(1_000);
  bench.queue(2);
  assertEquals((bench.errors[1].cause as Error).message, "no answer within 1000 ms");
});

Deno.test("connect() logs in with credentials", async () => {
  const network = new FakeNetwork();
  const connecting = connect("redis://h", {
    connect: network.connect,
    credentials: () => ({ password: "token" }),
  });
  await runMicrotasks();
  assertEquals(network.last.written, wire("AUTH", "token") + PING);
  network.last.feed("+OK\r\n+PONG\r\n");
  await (await connecting).close();
  const failing = connect("redis://h", {
    connect: network.connect,
    credentials: () => Promise.reject(new Error("no token today")),
  });
  assert((await assertRejects(() => failing, Error)).cause instanceof Error);
});
