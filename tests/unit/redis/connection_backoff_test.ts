import {
  assertEquals,
  assertGreaterOrEqual,
  assertInstanceOf,
  assertLessOrEqual,
} from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { test } from "../../support/connection_bench.ts";
import { FakeTransport } from "../../support/fake_transport.ts";
import { NAME } from "../../support/stream_bench.ts";

for (const fraction of [0, 0.5, 0.999_999]) {
  test(`Connection is opened again after delays that double up to a second, with a jitter of ${fraction}`, async (bench) => {
    bench.fraction = fraction;
    await bench.open();
    bench.network.mode = "refuse";
    await bench.hangUp();
    let fromMs = bench.clock.monotonicMs();
    for (const limitMs of [50, 100, 200, 400, 800, 1_000, 1_000, 1_000]) {
      const count = bench.network.targets.length;
      while (bench.network.targets.length === count) await bench.clock.advance(1);
      const delayMs = bench.clock.monotonicMs() - fromMs;
      assertGreaterOrEqual(delayMs, limitMs * (1 + fraction) / 2 - 1);
      assertLessOrEqual(delayMs, limitMs * (1 + fraction) / 2 + 2);
      fromMs = bench.clock.monotonicMs();
    }
  });
}

for (const [livedMs, shortMs] of [[0, 0], [300, 0], [1_000, 1], [1_999, 1], [2_000, 2]]) {
  const lasts = ["long", "short", "short, and so is the next one"][shortMs];
  test.open(`Connection waits, after one that was logged in for ${livedMs} ms, for a delay that is ${lasts}`, async (bench) => {
    bench.network.mode = "refuse";
    await bench.hangUp();
    await bench.clock.advance(10_000);
    await bench.reconnect();
    await bench.advance(livedMs);
    const { length } = bench.network.targets;
    bench.network.mode = "refuse";
    bench.fraction = 0; // a short delay is random, too
    await bench.hangUp();
    bench.queue(1);
    assertEquals(bench.errors[0].endedEarly, livedMs < 2_000 ? 1 : 0);
    await bench.advance(24);
    assertEquals(bench.network.targets.length, length);
    await bench.advance(6);
    assertEquals(bench.network.targets.length - length, Math.min(shortMs, 1));
    await bench.advance(105);
    assertEquals(bench.network.targets.length - length, shortMs);
  });
}

for (const address of ["redis://h", "redis://:pw@h"]) {
  test(`Connection to ${address} backs off from a server that accepts the login and hangs up, and counts how often`, async (bench) => {
    bench.use({}, address);
    bench.network.make = () => {
      const transport = new FakeTransport();
      const write = transport.write.bind(transport);
      transport.write = (bytes) => {
        const commands = new TextDecoder().decode(bytes).match(/^\*/gm)!.length;
        transport.feed("+OK\r\n".repeat(commands));
        bench.wheel.after(5, () => transport.end());
        return write(bytes);
      };
      return transport;
    };
    bench.queue(1);
    await bench.advance(20_000);
    // as without a pause it would be a thousand
    assertLessOrEqual(bench.network.targets.length, 32);
    const count = bench.network.targets.length;
    bench.queue(2);
    const { message, endedEarly } = bench.errors.at(-1)!;
    assertLessOrEqual(count - 1, endedEarly);
    assertEquals(
      message,
      `Connection to ${NAME} was lost right after the login, ${endedEarly} times in a row: the server closed the connection`,
    );
  });
}

const MAX_CLIENTS = "ERR max number of clients reached";

/**
 * Servers that accept connections and serve nobody: what each does with a stream, and the error
 * that it sent.
 */
const REFUSING: readonly (readonly [
  what: string,
  address: string,
  act: (stream: FakeTransport) => void,
  error?: string,
])[] = [
  ...["redis://h", "redis://:pw@h"].flatMap((address) =>
    [
      ["sends an error at once and hangs up", address, (stream: FakeTransport) => {
        stream.feed(`-${MAX_CLIENTS}\r\n`);
        stream.end();
      }, MAX_CLIENTS],
      [
        "sends an error at once and leaves the connection open",
        address,
        (stream: FakeTransport) => stream.feed(`-${MAX_CLIENTS}\r\n`),
        MAX_CLIENTS,
      ],
      [
        "replies to the first command with an error and hangs up",
        address,
        (stream: FakeTransport) => {
          const write = stream.write.bind(stream);
          stream.write = (bytes) => {
            stream.feed(`-${MAX_CLIENTS}\r\n`);
            stream.end();
            return write(bytes);
          };
        },
        MAX_CLIENTS,
      ],
    ] as const
  ),
  ["accepts the login and hangs up", "redis://:pw@h", (stream) => {
    stream.feed("+OK\r\n");
    stream.end();
  }],
  ["hangs up at once", "redis://h", (stream) => stream.end()],
];

for (const [what, address, act, refusal] of REFUSING) {
  test(`Connection to ${address} backs off from a server that ${what}, and repeats its words`, async (bench) => {
    bench.use({}, address);
    bench.network.make = () => {
      const transport = new FakeTransport();
      act(transport);
      return transport;
    };
    for (let id = 0; id < 400; id++) { // twenty commands a second
      bench.queue(id);
      if (id === 200) bench.network.targets.length = 0;
      await bench.clock.advance(50);
    }
    assertLessOrEqual(bench.network.targets.length, 16); // within ten seconds
    if (refusal === undefined) return;
    const [, last] = bench.replies.at(-1)!;
    const shown = last instanceof ReplyError ? last.message : last;
    assertEquals(String(shown).replace(`Connection to ${NAME} was refused: `, ""), refusal);
    for (const { cause } of bench.errors) assertInstanceOf(cause, ReplyError);
  });
}

test("Connection shows a server's error without our user name, our password and without control characters", async (bench) => {
  bench.use({}, "redis://locker:hunter2@h");
  await bench.submit(1);
  await bench.feed("-ERR locker: bad hunter2\x1b[2J\u2028node-2 is fine\r\n");
  const text = "ERR ***: bad ***\\u{1b}[2J\\u{2028}node-2 is fine";
  assertEquals(bench.replies[0][1], `Connection to ${NAME} was refused: ${text}`);
});

test("Connection shows why it could not be made without our password and without control characters, cut off", async (bench) => {
  bench.use({}, "redis://hunter:hunter2@h");
  bench.network.mode = "refuse";
  bench.network.refusal = new Error(`altnames: DNS:hunter2\nnode-2: fine${"x".repeat(10_000)}`);
  await bench.submit(1);
  const [, message] = bench.replies[0] as [number, string];
  const prefix = `Connection to ${NAME} could not be made: altnames: DNS:***\\u{a}node-2: fine`;
  assertEquals(message.slice(0, prefix.length), prefix);
  assertLessOrEqual(message.length, 700);
});

// Whether the server is available

for (const ok of ["", "+OK\r\n"]) {
  const why = ok ? "lost: the server closed the connection" : "refused: MASTERDOWN no primary";
  test(`Connection says '${why}' if the server hangs up behind '-MASTERDOWN${ok && ", +OK"}'`, async (bench) => {
    bench.use({}, "redis://h");
    await bench.submit(1);
    for (const id of [2, 3]) bench.queue(id);
    bench.transport.feed(`-MASTERDOWN no primary\r\n${ok}`);
    bench.transport.end();
    await bench.advance(0);
    assertEquals(bench.replies.at(-1), [3, `Connection to ${NAME} was ${why}`, "unknown"]);
  });
}
