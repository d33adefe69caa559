import { assertEquals } from "@std/assert";
import { readCommand } from "../../../src/nodes/read_command.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { EXTEND_KEYS } from "../../../src/redis_node/extend_operation.ts";
import { acquireOperation, releaseOperation } from "../../../src/redis_node/redis_node.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";

Deno.test("readCommand() reads back every argument, also beyond ASCII and with line ends", () => {
  const args = ["SET", "ключ 🔑\r\n$3", "", "\0", "x".repeat(70_000)];
  assertEquals(readCommand(encodeCommand(args)).args, args);
});

Deno.test("readCommand() finds keys, value and TTL of every command that sets keys", () => {
  for (const keys of [["k"], ["k", "l"]]) {
    for (const queues of [false, true]) {
      for (const counterFloor of [undefined, 7]) {
        const request = new FakeRequest(keys, {
          ...(queues ? { ticket: ticketOf() } : {}),
          ...(counterFloor === undefined ? {} : { counterFloor }),
        });
        for (const call of ["EVAL", "EVALSHA"] as const) {
          const found = readCommand(acquireOperation(request, queues).encode(request, call));
          const { args, value, ttlMs } = found;
          assertEquals([found.keys, value, ttlMs], [keys, "v", 1_000], args.join());
        }
      }
    }
  }
});

Deno.test("readCommand() finds keys and value of a release, and no TTL", () => {
  for (const keys of [["k"], ["k", "l"]]) {
    for (const call of ["EVAL", "EVALSHA"] as const) {
      const request = new FakeRequest(keys);
      const found = readCommand(releaseOperation(request).encode(request, call));
      assertEquals([found.keys, found.value, found.ttlMs], [keys, "v", undefined]);
    }
  }
});

Deno.test("readCommand() finds the keys of other commands, but for those that begin with hasp:", () => {
  const extend = EXTEND_KEYS.encode(new FakeRequest("k"), "EVALSHA");
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
