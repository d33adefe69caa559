import { assertEquals } from "@std/assert";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  EarBench as Bench,
  PROBE,
  RECONNECT_MS,
  SEAT,
  SUBSCRIBED,
  wakeMessage as message,
} from "../../support/redis_node_bench.ts";

const UNHEARD_DELAY_MS = 100;
const SUBSCRIBE = wire("SUBSCRIBE", "hasp:wake:id");

// Beginning

Deno.test("ReleaseSubscription connects when it is opened, and not before", async () => {
  const bench = await new Bench().ready();
  assertEquals(bench.network.targets, []);
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  assertEquals(bench.network.last.writes, [SUBSCRIBE]);
  assertEquals([bench.written, bench.ear.listening, bench.events], ["", false, []]);
  await bench.close();
});

Deno.test("ReleaseSubscription listens once a message to itself was heard, which tells nobody", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  assertEquals([bench.written, bench.ear.listening, bench.events], [PROBE, false, []]);
  await bench.hear(message(""));
  assertEquals([bench.ear.listening, bench.events], [false, []]);
  await bench.answer(":1\r\n");
  assertEquals([bench.ear.listening, bench.events], [true, [["listening", SEAT]]]);
  await bench.advance(10 * UNHEARD_DELAY_MS);
  assertEquals([bench.written, bench.events.length], ["", 1]);
  await bench.close();
});

Deno.test("ReleaseSubscription.open() does nothing while it is open", async () => {
  const bench = await (await new Bench().ready()).listen();
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  assertEquals([bench.network.targets.length, bench.events], [1, []]);
  await bench.close();
});

Deno.test("ReleaseSubscription sends its message once the connection for commands is made", async () => {
  const bench = new Bench();
  bench.commandNetwork.mode = "refuse";
  await bench.subscribe();
  await bench.advance(0);
  assertEquals(bench.events, [["deaf", SEAT]]);
  bench.commandNetwork.mode = "accept";
  await bench.advance(RECONNECT_MS);
  assertEquals([bench.written, bench.ear.listening], [PROBE, false]);
  await bench.answer(":1\r\n");
  assertEquals([bench.ear.listening, bench.events.slice(1)], [true, [["listening", SEAT]]]);
  await bench.close();
});

Deno.test("ReleaseSubscription sends its message again where the connection for commands broke before the reply", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  bench.commandNetwork.last.end();
  await runMicrotasks();
  assertEquals([bench.ear.listening, bench.events], [false, [["deaf", SEAT]]]);
  await bench.advance(RECONNECT_MS);
  assertEquals(bench.written, PROBE);
  await bench.answer(":1\r\n");
  assertEquals(bench.events.slice(1), [["listening", SEAT]]);
  await bench.close();
});

Deno.test("ReleaseSubscription listens on while the connection for commands is made anew, and sends no message", async () => {
  const bench = await (await new Bench().ready()).listen();
  bench.commandNetwork.last.end();
  await bench.advance(RECONNECT_MS);
  assertEquals([bench.commandNetwork.transports.length, bench.written], [2, ""]);
  assertEquals([bench.ear.listening, bench.events], [true, []]);
  await bench.close();
});

// Refusals

Deno.test("ReleaseSubscription is refused for good where three messages in a row reach nobody, twice", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  const threeTimes = async () => {
    for (let unheard = 1; unheard < 3; unheard++) {
      await bench.answer(":0\r\n");
      await bench.advance(UNHEARD_DELAY_MS - 1);
      assertEquals([bench.written, bench.events], ["", []]);
      await bench.advance(1);
      assertEquals(bench.written, PROBE);
    }
    await bench.answer(":0\r\n");
  };
  await threeTimes();
  assertEquals([bench.network.targets.length, bench.events], [2, []]); // the subscription may be dead
  await bench.subscribe();
  await threeTimes();
  const error = "redis://h:6379 passes no messages on";
  assertEquals([bench.ear.listening, bench.events], [false, [["refused", SEAT, error]]]);
  await bench.advance(60_000);
  assertEquals([bench.network.last.closed, bench.written], [true, ""]);
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  assertEquals([bench.network.targets.length, bench.events.length], [2, 1]);
  await bench.close();
});

Deno.test("ReleaseSubscription counts anew how many messages reach nobody once one was heard", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  for (let rounds = 0; rounds < 3; rounds++) {
    for (let unheard = 1; unheard < 3; unheard++) {
      await bench.answer(":0\r\n");
      await bench.advance(UNHEARD_DELAY_MS);
    }
    await bench.answer(":1\r\n");
    assertEquals(bench.events.at(-1), ["listening", SEAT]);
    await bench.cut();
    await bench.advance(RECONNECT_MS);
    await bench.hear(SUBSCRIBED);
    assertEquals(bench.written, PROBE);
  }
  assertEquals(bench.events.some(([event]) => event === "refused"), false);
  await bench.close();
});

for (const error of ["NOPERM no access to 'publish'", "ERR unknown command 'PUBLISH'"]) {
  const [prefix] = error.split(" ", 1);

  Deno.test(`ReleaseSubscription is refused for good by ${prefix} to its message`, async () => {
    const bench = await (await new Bench().ready()).subscribe();
    await bench.answer(`-${error}\r\n`);
    assertEquals([bench.ear.listening, bench.events], [false, [["refused", SEAT, error]]]);
    await bench.advance(60_000);
    assertEquals([bench.network.last.closed, bench.written], [true, ""]);
    bench.ear.open(bench, SEAT);
    assertEquals([bench.network.targets.length, bench.events.length], [1, 1]);
    await bench.close();
  });

  Deno.test(`ReleaseSubscription is refused for good by ${prefix} to SUBSCRIBE, and sends no message`, async () => {
    const bench = await new Bench().ready();
    bench.ear.open(bench, SEAT);
    await runMicrotasks();
    await bench.hear(`-${error}\r\n`);
    assertEquals([bench.events, bench.written], [[["refused", SEAT, error]], ""]);
    bench.ear.open(bench, SEAT);
    assertEquals(bench.network.targets.length, 1);
    await bench.close();
  });
}

Deno.test("ReleaseSubscription.refuse() ends listening for good, and says so once", async () => {
  const bench = await (await new Bench().ready()).listen();
  bench.ear.refuse(new Error("no"));
  bench.ear.refuse(new Error("no again"));
  assertEquals([bench.ear.listening, bench.events], [false, [["refused", SEAT, "no"]]]);
  await bench.advance(60_000);
  assertEquals([bench.network.last.closed, bench.network.targets.length], [true, 1]);
  await bench.close();
});

Deno.test("ReleaseSubscription goes on trying while the server is busy, however long that takes", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  for (let replies = 0; replies < 5; replies++) {
    assertEquals(bench.written, PROBE);
    await bench.answer("-BUSY Redis is busy running a script.\r\n");
    await bench.advance(1_000);
  }
  assertEquals(bench.events.some(([event]) => event === "refused"), false);
  await bench.answer(":1\r\n");
  assertEquals([bench.ear.listening, bench.events.at(-1)], [true, ["listening", SEAT]]);
  await bench.close();
});

// Messages

for (
  const [text, notice] of [["id:1", "first"], ["id:a9+", "next"], ["id:zz-", "taken"]] as const
) {
  Deno.test(`ReleaseSubscription reports ${text} as "${notice}"`, async () => {
    const bench = await (await new Bench().ready()).listen();
    await bench.hear(message(text));
    assertEquals(bench.events, [[notice, SEAT, text.replace(/[+-]$/u, "")]]);
    await bench.close();
  });
}

Deno.test("ReleaseSubscription reports messages in their order, and none that is no ticket of its client", async () => {
  const bench = await (await new Bench().ready()).listen();
  const forged = [
    "",
    "hello",
    "id",
    "id:",
    "id:1++",
    "id:1 ",
    "id:é",
    "id:1:2",
    "ID:1",
    "other:1",
    "idx:1",
  ];
  await bench.hear(["id:1", ...forged, "id:2+", "id:1"].map(message).join(""));
  assertEquals(bench.events, [["first", SEAT, "id:1"], ["next", SEAT, "id:2"], [
    "first",
    SEAT,
    "id:1",
  ]]);
  assertEquals(bench.written, "");
  await bench.close();
});

Deno.test("ReleaseSubscription reports what the node's clock showed during the probe", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  const sentMs = bench.clock.monotonicMs();
  await bench.advance(30);
  await bench.answer(":1\r\n");
  assertEquals(bench.readings, [{ timeMs: 1_700_000_000_250, sentMs, receivedMs: sentMs + 30 }]);
  await bench.close();
});

Deno.test("ReleaseSubscription listens without the time if the server does not say it", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  await bench.commandNetwork.last.answer("-NOPERM no 'time'\r\n:1\r\n");
  assertEquals([bench.events, bench.readings], [[["listening", SEAT]], [undefined]]);
  await bench.close();
});

// Cuts

Deno.test("ReleaseSubscription is deaf from a cut on, and listens again once a message to itself was heard", async () => {
  const bench = await (await new Bench().ready()).listen();
  await bench.cut();
  assertEquals([bench.ear.listening, bench.events], [false, [["deaf", SEAT]]]);
  await bench.advance(RECONNECT_MS);
  assertEquals(bench.network.last.writes, [SUBSCRIBE]);
  await bench.hear(SUBSCRIBED);
  assertEquals([bench.written, bench.ear.listening], [PROBE, false]);
  await bench.answer(":1\r\n");
  assertEquals([bench.ear.listening, bench.events.slice(1)], [true, [["listening", SEAT]]]);
  await bench.hear(message("id:1"));
  assertEquals(bench.events.at(-1), ["first", SEAT, "id:1"]);
  await bench.close();
});

Deno.test("ReleaseSubscription does not listen by a message that was heard before a cut", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  await bench.cut();
  await bench.answer(":1\r\n");
  assertEquals([bench.ear.listening, bench.events], [false, [["deaf", SEAT]]]);
  await bench.advance(RECONNECT_MS);
  await bench.hear(SUBSCRIBED);
  assertEquals([bench.written, bench.ear.listening], [PROBE, false]);
  await bench.close();
});

// Closing

Deno.test("ReleaseSubscription.close() ends its connection, tells nothing more and leaves the other one", async () => {
  const bench = await (await new Bench().ready()).listen();
  const closing = bench.ear.close();
  assertEquals(bench.ear.listening, false);
  await bench.hear(message("id:1"));
  await advanceUntil(bench.clock, closing);
  assertEquals([bench.network.last.closed, bench.commandNetwork.last.closed], [true, false]);
  assertEquals([bench.events, bench.wheel.size], [[], 0]);
  await bench.close();
});

Deno.test("ReleaseSubscription.close() of one that was never opened does nothing", async () => {
  const bench = new Bench();
  await bench.ear.close();
  await bench.ear.close();
  assertEquals(bench.network.targets, []);
  await bench.close();
});

Deno.test("ReleaseSubscription.close() sends no message again that reached nobody", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  await bench.answer(":0\r\n");
  await advanceUntil(bench.clock, bench.ear.close());
  assertEquals(bench.wheel.size, 0);
  await bench.advance(10 * UNHEARD_DELAY_MS);
  assertEquals([bench.written, bench.events], ["", []]);
  await bench.close();
});

Deno.test("ReleaseSubscription.close() makes it deaf to the reply to its message", async () => {
  const bench = await (await new Bench().ready()).subscribe();
  const closing = bench.ear.close();
  await bench.answer(":1\r\n");
  await advanceUntil(bench.clock, closing);
  assertEquals([bench.ear.listening, bench.events], [false, []]);
  await bench.close();
});

Deno.test("ReleaseSubscription.close() makes it deaf to the reply to SUBSCRIBE", async () => {
  const bench = await new Bench().ready();
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  const closing = bench.ear.close();
  await bench.hear(SUBSCRIBED);
  assertEquals(bench.written, "");
  await advanceUntil(bench.clock, closing);
  assertEquals([bench.ear.listening, bench.events], [false, []]);
  await bench.close();
});

Deno.test("ReleaseSubscription listens again where it is opened after it was closed", async () => {
  const bench = await (await new Bench().ready()).listen();
  const [first] = bench.network.transports;
  const closing = bench.ear.close();
  await bench.listen();
  await advanceUntil(bench.clock, closing);
  assertEquals([bench.network.transports.length, first.closed], [2, true]);
  assertEquals([bench.ear.listening, bench.network.last.closed], [true, false]);
  await bench.hear(message("id:1"));
  assertEquals(bench.events, [["first", SEAT, "id:1"]]);
  await bench.close();
});

Deno.test("ReleaseSubscription hears nothing over a connection that it had before it was closed", async () => {
  const bench = await new Bench().ready();
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  const [first] = bench.network.transports;
  const closing = bench.ear.close(); // its SUBSCRIBE is on its way
  bench.ear.open(bench, SEAT);
  await runMicrotasks();
  first.feed(SUBSCRIBED + message("id:1"));
  await runMicrotasks();
  assertEquals([bench.written, bench.events], ["", []]);
  await bench.hear(SUBSCRIBED);
  assertEquals(bench.written, PROBE);
  await advanceUntil(bench.clock, closing);
  await bench.close();
});
