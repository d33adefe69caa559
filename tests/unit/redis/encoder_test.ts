import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { type CommandArgument, commandArguments } from "../../../src/redis/command_arguments.ts";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import { encodeCommand, joinCommands } from "../../../src/redis/encoder.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { commandBytes } from "../../support/command_bytes.ts";

const SEED = 20_260;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Encodes any command that a user may send. */
function encodeAny(command: readonly CommandArgument[]): Uint8Array {
  return commandBytes(commandArguments(command));
}

function encodedText(...command: CommandArgument[]): string {
  return decoder.decode(encodeAny(command));
}

function decoded(bytes: Uint8Array): RawReply[] {
  const replies: RawReply[] = [];
  new RespDecoder((reply) => replies.push(reply)).push(bytes);
  return replies;
}

/** The bytes of an argument as a server must receive them. */
function argumentBytes(argument: CommandArgument): Uint8Array {
  return argument instanceof Uint8Array ? argument : encoder.encode(String(argument));
}

const anyArgument: fc.Arbitrary<CommandArgument> = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom("\r", "\n", "\0", "$", "*", "-", ":", "é", "😀", "\ud800") }),
  fc.maxSafeInteger(),
  fc.bigInt(),
  fc.uint8Array(),
);
const anyCommand = fc.array(anyArgument, { minLength: 1 });

Deno.test("encodeCommand() writes text and numbers as bulk strings, and counts bytes, not characters", () => {
  const lengths = { "": 0, "a": 1, "\x7f": 1, "\x80": 2, "€": 3, "😀": 4, "*1\r\n$1\r\n": 8 };
  const bulks = Object.entries(lengths).map(([text, length]) => `$${length}\r\n${text}\r\n`);
  assertEquals(encodedText(...Object.keys(lengths)), `*7\r\n${bulks.join("")}`);
  assertEquals(encodedText("SET", -7, 12n), "*3\r\n$3\r\nSET\r\n$2\r\n-7\r\n$2\r\n12\r\n");
  assertEquals(encodedText("a\ud800b"), "*1\r\n$5\r\na\ufffdb\r\n");
});

Deno.test("encodeCommand() writes several commands of equal length one behind another, also long ones", () => {
  for (const value of ["v", "x".repeat(200_000)]) {
    const words = ["SET", "k", value, "SET", "l", value];
    const apart = [words.slice(0, 3), words.slice(3)].map((args) => encodeCommand(args));
    assertEquals(joinCommands([encodeCommand(words, 2)]), joinCommands(apart));
  }
});

Deno.test("encodeCommand() copies binary arguments as they are, and the caller may change them afterwards", () => {
  const argument = new Uint8Array([0, 255, 13, 10]);
  const command = commandBytes([argument]);
  argument.fill(66);
  const expected = [...encoder.encode("*1\r\n$4\r\n"), 0, 255, 13, 10, 13, 10];
  assertEquals([...command], expected);
});

Deno.test("encodeCommand() gives its arguments back through RespDecoder, whatever they hold, and keeps earlier commands", () => {
  const kept: (readonly [command: Uint8Array, args: readonly CommandArgument[]])[] = [];
  fc.assert(
    fc.property(anyCommand, (command) => {
      kept.push([encodeAny(command), command]);
      assertEquals(decoded(kept.at(-1)![0]), [command.map(argumentBytes)]);
    }),
    { seed: SEED, numRuns: 300 },
  );
  for (let index = 0; index < 10_000; index++) encodeCommand(["SET", `key:${index}`, "value"]);
  for (const [command, args] of kept) assertEquals(decoded(command), [args.map(argumentBytes)]);
});

for (const length of [0, 9, 10, 99, 100, 65_535, 65_536, 200_000]) {
  Deno.test(`encodeCommand() takes an argument of ${length} letters`, () => {
    for (const letter of ["x", "é"]) {
      const text = letter.repeat(length);
      const expected = `*2\r\n$1\r\n.\r\n$${encoder.encode(text).length}\r\n${text}\r\n`;
      assertStrictEquals(encodedText(".", text), expected);
    }
  });
}

const COMMAND = "it must be an array of at least one argument";
const ARGUMENT = "its arguments must be strings, integers or Uint8Arrays: found";

for (
  const [command, reason] of [
    [[], COMMAND],
    ["PING", COMMAND],
    [["secret", null], `${ARGUMENT} null`],
    // deno-lint-ignore no-sparse-arrays
    [["secret", , "x"], `${ARGUMENT} undefined`],
    [["secret", undefined], `${ARGUMENT} undefined`],
    [["secret", {}], `${ARGUMENT} object`],
    [["secret", Symbol("s")], `${ARGUMENT} symbol`],
    ...[1.5, NaN, Infinity, 2 ** 53].map((number) => {
      return [["X", number], `its numbers must be safe integers: current value is ${number}`];
    }),
  ] as readonly [unknown, string][]
) {
  Deno.test(`commandArguments() refuses ${Deno.inspect(command)}`, () => {
    const { message, name } = assertThrows(() => commandArguments(command as string[]), Error);
    const expected = reason.includes("safe") ? "RangeError" : "TypeError";
    assertEquals([message, name], [`Cannot encode command as ${reason}`, expected]);
  });
}

Deno.test("encodeCommand() keeps nothing of a long command", () => {
  const { slab } = encodeCommand(["PING"]);
  const long = encodeCommand(["SET", "k", "x".repeat(300_000)]);
  assert(joinCommands([long]) !== joinCommands([long]));
  assertStrictEquals(encodeCommand(["PING"]).slab, slab);
});

Deno.test("joinCommands() copies nothing of adjacent commands, and returns one array for all nodes", () => {
  const commands = [encodeCommand(["PING"]), encodeCommand(["TIME"])];
  const joined = joinCommands(commands);
  assertStrictEquals(joined.buffer, commands[0].slab.buffer);
  assertStrictEquals(joinCommands(commands), joined);
  assertStrictEquals(joinCommands(commands.slice(1)).buffer, joined.buffer);
});

Deno.test("joinCommands() keeps any commands apart, in their order, whether they are adjacent in memory or not", () => {
  fc.assert(
    fc.property(fc.array(anyCommand, { minLength: 1 }), fc.nat(), (commands, seed) => {
      const encoded = commands.map((command) => encodeCommand(commandArguments(command)));
      const order = commands.map((_, index) => index);
      if (seed % 4 === 1) order.reverse();
      if (seed % 4 === 2) order.push(seed % commands.length);
      if (seed % 4 === 3) order.splice(seed % commands.length, commands.length > 1 ? 1 : 0);
      const joined = joinCommands(order.map((index) => encoded[index]));
      assertEquals(decoded(joined), order.map((index) => commands[index].map(argumentBytes)));
    }),
    { seed: SEED },
  );
});
