import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import {
  bytesMax,
  type CommandArgument,
  CommandWriter,
  encodeCommand,
  encodeConstant,
  encodeHead,
  joinCommands,
} from "../../../src/redis/encoder.ts";
import type { RawReply } from "../../../src/redis/reply.ts";

const SEED = 20_260;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function encodedText(command: readonly CommandArgument[]): string {
  return decoder.decode(encodeCommand(command));
}

function decoded(bytes: Uint8Array): RawReply[] {
  const replies: RawReply[] = [];
  new RespDecoder((reply) => replies.push(reply)).push(bytes);
  return replies;
}

/** The bytes of an argument as a server must see them; a copy, so that no view of a buffer is compared. */
function argumentBytes(argument: CommandArgument): Uint8Array {
  return new Uint8Array(
    argument instanceof Uint8Array ? argument : encoder.encode(String(argument)),
  );
}

const anyArgument: fc.Arbitrary<CommandArgument> = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom("\r", "\n", "\0", "$", "*", "-", ":", "é", "😀", "\ud800") }),
  fc.maxSafeInteger(),
  fc.bigInt(),
  fc.uint8Array(),
);

Deno.test("encodeHead() announces more arguments than it writes", () => {
  assertEquals(decoder.decode(encodeHead(3, "SET", "ké")), "*3\r\n$3\r\nSET\r\n$3\r\nké\r\n");
});

Deno.test("encodeConstant() is the UTF-8 of its text", () => {
  assertEquals(encodeConstant("é\r\n"), new Uint8Array([0xc3, 0xa9, 13, 10]));
});

Deno.test("encodeCommand() counts bytes, not characters", () => {
  assertEquals(
    encodedText(["", "a", "\x7f", "\x80", "é", "€", "😀"]),
    "*7\r\n$0\r\n\r\n$1\r\na\r\n$1\r\n\x7f\r\n$2\r\n\x80\r\n$2\r\né\r\n$3\r\n€\r\n$4\r\n😀\r\n",
  );
});

Deno.test("encodeCommand() writes a lone surrogate as U+FFFD, and counts its three bytes", () => {
  assertEquals(encodedText(["a\ud800b"]), "*1\r\n$5\r\na\ufffdb\r\n");
});

Deno.test("encodeCommand() writes text and numbers as bulk strings", () => {
  assertEquals(
    encodedText(["SET", "k", -7, 12n]),
    "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n-7\r\n$2\r\n12\r\n",
  );
});

Deno.test("encodeCommand() keeps payloads that look like protocol apart by length", () => {
  assertEquals(encodedText(["*1\r\n$1\r\n"]), "*1\r\n$8\r\n*1\r\n$1\r\n\r\n");
});

Deno.test("encodeCommand() takes binary arguments as they are", () => {
  assertEquals(
    new Uint8Array(encodeCommand(["SET", new Uint8Array([0, 255, 13, 10])])),
    new Uint8Array([
      ...encoder.encode("*2\r\n$3\r\nSET\r\n$4\r\n"),
      ...[0, 255, 13, 10],
      ...encoder.encode("\r\n"),
    ]),
  );
});

Deno.test("encodeCommand() copies binary arguments, which the caller may change afterwards", () => {
  const argument = new Uint8Array([65]);
  const command = encodeCommand([argument]);
  argument[0] = 66;
  assertEquals(decoder.decode(command), "*1\r\n$1\r\nA\r\n");
});

Deno.test("encodeCommand() refuses a command without arguments", () => {
  assertEquals(
    assertThrows(() => encodeCommand([]), TypeError).message,
    "Cannot encode command as it must be an array of at least one argument",
  );
});

Deno.test("encodeCommand() refuses a command that is no array", () => {
  assertEquals(
    assertThrows(() => encodeCommand("PING" as unknown as string[]), TypeError).message,
    "Cannot encode command as it must be an array of at least one argument",
  );
});

for (
  const [argument, found] of [
    [null, "null"],
    [undefined, "undefined"],
    [{}, "object"],
    [true, "boolean"],
    [Symbol("s"), "symbol"],
  ] as const
) {
  Deno.test(`encodeCommand() refuses an argument that is ${found}, without showing the others`, () => {
    assertEquals(
      assertThrows(() => encodeCommand(["secret", argument as unknown as string]), TypeError)
        .message,
      `Cannot encode command as its arguments must be strings, integers or Uint8Arrays: found ${found}`,
    );
  });
}

for (const number of [1.5, NaN, Infinity, 2 ** 53]) {
  Deno.test(`encodeCommand() refuses the number ${number}`, () => {
    assertEquals(
      assertThrows(() => encodeCommand(["X", number]), RangeError).message,
      `Cannot encode command as its numbers must be safe integers: current value is ${number}`,
    );
  });
}

Deno.test("encodeCommand() leaves the commands alone that it encoded before", () => {
  const first = encodeCommand(["SET", "a", "é".repeat(10)]);
  const copy = first.slice();
  for (let index = 0; index < 5_000; index++) encodeCommand(["SET", `key:${index}`, "value"]);
  assertEquals(first, copy);
});

for (const length of [0, 9, 10, 99, 100, 65_535, 65_536, 200_000]) {
  Deno.test(`encodeCommand() takes an argument of ${length} bytes`, () => {
    for (const letter of ["x", "é"]) {
      const text = letter.repeat(length);
      const expected = `*2\r\n$1\r\n.\r\n$${encoder.encode(text).length}\r\n${text}\r\n`;
      assertStrictEquals(encodedText([".", text]), expected);
    }
  });
}

Deno.test("encodeCommand() gives its arguments back through RespDecoder, whatever they hold", () => {
  fc.assert(
    fc.property(fc.array(anyArgument, { minLength: 1 }), (command) => {
      assertEquals(decoded(encodeCommand(command)), [command.map(argumentBytes)]);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

Deno.test("bytesMax() is enough for any argument", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array()), (argument) => {
      const writer = new CommandWriter(bytesMax(argument));
      if (typeof argument === "string") writer.text(argument);
      else writer.bytes(argument);
      assertEquals(decoded(writer.end().slice()), [argumentBytes(argument)]);
    }),
    { seed: SEED },
  );
});

Deno.test("CommandWriter lays constant and variable parts one behind the other", () => {
  const head = encodeHead(3, "SET");
  const command = new CommandWriter(head.length + bytesMax("k") + bytesMax("é"))
    .constant(head).text("k").text("é").end();
  assertEquals(decoder.decode(command), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\né\r\n");
});

Deno.test("joinCommands() gives one command back as it is", () => {
  const command = encodeCommand(["PING"]);
  assertStrictEquals(joinCommands([command]), command);
});

Deno.test("joinCommands() keeps any commands apart, in their order", () => {
  const commands = fc.array(fc.array(anyArgument, { minLength: 1 }), { minLength: 1 });
  fc.assert(
    fc.property(commands, fc.nat(), (commands, seed) => {
      const encoded = commands.map((command) => encodeCommand(command));
      // Some in the order they were encoded in, some not.
      const order = commands.map((_, index) => index);
      if (seed % 3 === 1) order.reverse();
      if (seed % 3 === 2) order.push(seed % commands.length);
      const joined = joinCommands(order.map((index) => encoded[index]));
      assertEquals(decoded(joined), order.map((index) => commands[index].map(argumentBytes)));
    }),
    { seed: SEED },
  );
});

Deno.test("joinCommands() leaves nothing out between commands that do not lie side by side", () => {
  const first = encodeCommand(["A"]);
  encodeCommand(["B"]);
  const third = encodeCommand(["C"]);
  assertEquals(decoder.decode(joinCommands([first, third])), "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nC\r\n");
});
