import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { RedisClient } from "../../../src/redis/client.ts";
import { ConnectionError } from "../../../src/redis/errors.ts";
import { test } from "../../support/connection_bench.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { PING } from "../../support/fake_transport.ts";
import type { OnChunk } from "../../../src/transport/transport.ts";
import { LOST, LOST_UNANSWERED, NAME } from "../../support/stream_bench.ts";

// Losing it

test.open("Connection is lost if a write fails, with the failure as the cause", async (bench) => {
  const cause = bench.transport.writeError = new Error("broken pipe");
  await bench.submit(1);
  assertEquals(bench.replies, [[1, `Connection to ${NAME} was lost: broken pipe`, "unknown"]]);
  assertStrictEquals(bench.errors[0].cause, cause);
});

for (const [refusal, passedMs] of [["NOPERM no", 0], ["MISCONF no", 0], ["ERR no", 1e3]] as const) {
  test(`Connection does not take ${refusal} for the reason why it was lost ${passedMs} ms later`, async (bench) => {
    await bench.submit(1);
    await bench.feed(`-${refusal}\r\n`);
    await bench.submit(2);
    await bench.advance(passedMs);
    await bench.hangUp();
    const lost = refusal.startsWith("ERR") ? LOST_UNANSWERED : LOST;
    assertEquals(bench.replies[1], [2, lost, "unknown"]);
  });
}

test.open("Connection takes no server for one with TLS that has accepted a connection", async (bench) => {
  await bench.hangUp();
  await bench.nextStream();
  await bench.hangUp();
  await bench.submit(1);
  assertEquals(bench.replies, [[1, LOST, "not-sent"]]);
});

// Connecting

test("Connection stops connecting after connectTimeoutMs, and closes a stream that opens later", async (bench) => {
  bench.use({ connectTimeoutMs: 300 });
  bench.network.mode = "wait";
  bench.queue(1);
  await bench.advance(299);
  assertEquals(bench.replies, []);
  await bench.advance(2);
  const message = `Connection to ${NAME} could not be made: no answer within 300 ms`;
  assertEquals([bench.replies, bench.events], [[[1, message, "not-sent"]], [message]]);
  assertEquals((bench.errors[0].cause as Error).message, "no answer within 300 ms");
  assertEquals(bench.network.signals[0].aborted, true);
  const transport = bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals([transport.closed, transport.writes], [true, []]);
  while (!bench.network.signals[1]?.aborted) await bench.advance(1);
  bench.network.pending[1].refuse(new Error("aborted")); // as sockets do
  await bench.advance(290);
  assertEquals(bench.network.targets.length, 3);
});

for (const [stoppedMs, extraMs] of [[400, 100], [5_000, 300]] as const) {
  test(`Connection may take ${extraMs} ms more to connect, once, if the process stands still for ${stoppedMs} ms`, async (bench) => {
    bench.use({ connectTimeoutMs: 300 }, "redis://:pw@h");
    await bench.submit(1);
    bench.clock.block(stoppedMs);
    await bench.advance(extraMs - 1);
    assertEquals(bench.replies, []);
    bench.clock.block(stoppedMs);
    await bench.advance(1);
    assertEquals(bench.errors[0].outcome, "unknown");
    await bench.reconnect();
    bench.clock.block(stoppedMs);
    await bench.advance(extraMs - 1);
    await bench.answer("+OK\r\n+PONG\r\n");
    await bench.submit(2);
    await bench.feed("+PONG\r\n");
    assertEquals(bench.replies.slice(1), [[2, "PONG"]]);
  });
}

for (const how of ["rejects", "throws"]) {
  test(`Connection fails the commands that wait if connecting ${how}`, async (bench) => {
    const cause = new Error("the tunnel is closed"); // which says nothing about TLS
    bench.use({
      connect: () => {
        if (how === "throws") throw cause;
        return Promise.reject(cause);
      },
    });
    bench.queue(1);
    await bench.submit(2);
    const message = `Connection to ${NAME} could not be made: ${cause.message}`;
    assertEquals(bench.replies, [[1, message, "not-sent"], [2, message, "not-sent"]]);
    assertStrictEquals(bench.errors[0].cause, cause);
    assertEquals(bench.errors[0].address, NAME);
  });
}

for (const [method, error] of [["read", "odd"], ["write", "odd"], ["write", ""]]) {
  Deno.test(`Connection is down if ${method}() of a stream throws '${error}', and fails the next command at once`, async () => {
    let streams = 0;
    const connect = () => {
      streams++;
      const stream = {
        read: () => new Promise<null>(() => {}),
        write: (bytes: Uint8Array) => Promise.resolve(bytes.length),
        close() {},
        [method]() {
          if (error) throw new Error(error);
          return Promise.reject(error);
        },
      };
      return Promise.resolve(stream);
    };
    const client = new RedisClient("redis://h", { connect });
    const message = `Connection to ${NAME} was lost: ${error || "a write failed"}`;
    for (const _ of ["first", "second"]) {
      await assertRejects(() => client.send(["PING"]), ConnectionError, message);
    }
    assertEquals(streams, 1);
    await client.close();
  });
}

/** What no count of bytes is, and how a message shows it. */
const NO_COUNTS: readonly (readonly [value: unknown, shown: string])[] = [
  [undefined, "undefined"],
  ["5", "string"],
  [0, "0"],
  [-1, "-1"],
  [NaN, "NaN"],
  [1.5, "1.5"],
  [100_000, "100000"],
];

for (
  const [method, length] of [["read", 1_024], ["write", PING.length], ["receive", 8]] as const
) {
  for (const [value, shown] of NO_COUNTS) {
    Deno.test(`Connection is lost if ${method}() of a stream gives ${shown} as the number of its bytes`, async () => {
      let calls = 0;
      const connect = () => {
        const stream = {
          read: () => new Promise<null>(() => {}),
          write: (bytes: Uint8Array) => Promise.resolve(bytes.length),
          close() {},
          ...(method !== "receive" ? {} : {
            send: (_: Uint8Array, onSent: () => void) => onSent(),
            receive(onChunk: OnChunk) {
              calls++;
              queueMicrotask(() => onChunk(new Uint8Array(8), value as number));
            },
          }),
          ...(method === "receive" ? {} : {
            [method]() {
              if (++calls > 100) throw new Error("it is called again and again");
              return Promise.resolve(value as number);
            },
          }),
        };
        return Promise.resolve(stream);
      };
      const client = new RedisClient("redis://h", { connect });
      const named = method === "write" ? "write" : "read";
      const why =
        `the byte count of the transport's '${named}' must be an integer from 1 to ${length}: current value is ${shown}`;
      const error = await assertRejects(() => client.send(["PING"]), ConnectionError);
      assertEquals(error.message, `Connection to ${NAME} was lost: ${why}`);
      assertEquals(calls, 1);
      await client.close();
    });
  }
}
