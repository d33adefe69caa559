import { assertEquals } from "@std/assert";
import { readCommand } from "../../../src/nodes/read_command.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { encodeOperation, OPERATION } from "../../../src/redis_node/commands.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { FakeRequest } from "../../support/fake_request.ts";

const ticket = { ticketId: "c:1", priority: "in-order", score: 5, onEnqueued() {} } as const;

Deno.test("readCommand() reads back every argument, also beyond ASCII and with line ends", () => {
  const args = ["SET", "ключ 🔑\r\n$3", "", "\0", "x".repeat(70_000)];
  assertEquals(readCommand(encodeCommand(args)).args, args);
});

Deno.test("readCommand() finds keys, value and TTL of every command that sets keys", () => {
  const cases = [
    [OPERATION.set, ["k"], undefined],
    [OPERATION.acquire, ["k", "l"], undefined],
    [OPERATION.count, ["k"], undefined],
    [OPERATION.count, ["k", "l"], undefined],
    [OPERATION.queue, ["k", "l"], ticket],
    [OPERATION.queueCount, ["k"], ticket],
  ] as const;
  for (const [operation, keys, waiting] of cases) {
    for (const call of ["EVAL", "EVALSHA"] as const) {
      const counts = operation === OPERATION.count || operation === OPERATION.queueCount;
      const request = Object.assign(new FakeRequest(keys, "v"), {
        ticket: waiting,
        counterFloor: counts ? 7 : undefined,
      });
      const found = readCommand(encodeOperation(operation, request, call));
      assertEquals([found.keys, found.value, found.ttlMs], [keys, "v", 1_000], found.args.join());
    }
  }
});

Deno.test("readCommand() finds keys and value of a release, and no TTL", () => {
  for (const keys of [["k"], ["k", "l"]]) {
    for (const call of ["EVAL", "EVALSHA"] as const) {
      const request = new FakeRequest(keys, "v");
      const found = readCommand(encodeOperation(OPERATION.release, request, call));
      assertEquals([found.keys, found.value, found.ttlMs], [keys, "v", undefined]);
    }
  }
});

Deno.test("readCommand() finds the keys of other commands, but for those that begin with hasp:", () => {
  const extend = encodeOperation(OPERATION.extend, new FakeRequest(["k"], "v"), "EVALSHA");
  const cases = [
    [extend, ["k"]],
    [encodeCommand(["GET", "k"]), ["k"]],
    [encodeCommand(["GET", "hasp:born"]), []],
    [encodeCommand(["ZCARD", "hasp:queue:k"]), []],
    [encodeCommand(["EVAL", "return 1", "-1"]), []],
    [encodeCommand(["EVAL", "return 1", "1", "hasp:born"]), []],
    [encodeCommand(["TIME"]), []],
  ] as const;
  for (const [command, keys] of cases) {
    const found = readCommand(command);
    assertEquals([found.keys, found.value, found.ttlMs], [keys, undefined, undefined]);
  }
});

Deno.test("readCommand() reads a command that is not encoded", () => {
  const args = ["EVAL", RELEASE.source, "1", "k", "v"];
  assertEquals(readCommand(args), { args, keys: ["k"], value: "v", ttlMs: undefined });
});
