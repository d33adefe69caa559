import { assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import { type DecoderOptions, RespDecoder } from "../../../src/redis/decoder.ts";
import { ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { byteByByte, bytes, plain } from "../../support/decoding.ts";

/** What a decoder with a budget makes of a stream. */
function decode(stream: string, options: DecoderOptions, chunks = [bytes(stream)]) {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply), options);
  try {
    for (const chunk of chunks) decoder.push(chunk);
  } catch (error) {
    assertInstanceOf(error, ProtocolError);
    return { replies, error: error.message.replace("Cannot read reply as ", "") };
  }
  return { replies };
}

const FITTING: Record<string, string> = {
  "ten elements": `*10\r\n${":1\r\n".repeat(10)}`,
  "ten elements in two arrays": `*2\r\n*4\r\n${":1\r\n".repeat(4)}*4\r\n${":1\r\n".repeat(4)}`,
  "a bulk string of just as many bytes": `$100\r\n${"x".repeat(100)}\r\n`,
  "a bulk string inside an array": `*1\r\n$80\r\n${"x".repeat(80)}\r\n`,
  "as much again in the next reply": `*10\r\n${":1\r\n".repeat(10)}`.repeat(5),
  "one bulk string after another": `$100\r\n${"x".repeat(100)}\r\n`.repeat(5),
};

const ELEMENTS = "a reply has more than 10 elements";
const BYTES = "a reply has more than 100 bytes";

const EXCEEDING: Record<string, readonly [stream: string, reason: string]> = {
  "an array of more elements": ["*11\r\n", "a length is more than 10"],
  "more elements in nested arrays": [`*2\r\n*9\r\n`, ELEMENTS],
  "more elements in arrays side by side": [
    `*3\r\n*4\r\n${":1\r\n".repeat(4)}*4\r\n`,
    ELEMENTS,
  ],
  "more elements as deep as arrays may be": ["*1\r\n".repeat(11), ELEMENTS],
  "a bulk string of more bytes": ["$101\r\n", "a length is more than 100"],
  "more bytes in two bulk strings": [`*2\r\n$60\r\n${"x".repeat(60)}\r\n$60\r\n`, BYTES],
  "more bytes in lines": [`*3\r\n${`+${"x".repeat(40)}\r\n`.repeat(3)}`, BYTES],
  "more bytes in errors": [`*3\r\n${`-${"x".repeat(40)}\r\n`.repeat(3)}`, BYTES],
};

const BUDGET = { replyBytesMax: 100, replyElementsMax: 10 };

for (const [what, stream] of Object.entries(FITTING)) {
  Deno.test(`RespDecoder.push() with a budget takes ${what}, whole and byte by byte`, () => {
    const all = decode(stream, {});
    assertEquals(decode(stream, BUDGET), all);
    assertEquals(decode(stream, BUDGET, byteByByte(bytes(stream))), all);
  });
}

for (const [what, [stream, reason]] of Object.entries(EXCEEDING)) {
  Deno.test(`RespDecoder.push() with a budget refuses ${what}, whole and byte by byte, before it has come`, () => {
    assertEquals(decode(stream, BUDGET), { replies: [], error: reason });
    assertEquals(decode(stream, BUDGET, byteByByte(bytes(stream))).error, reason);
    assertEquals(decode(`+OK\r\n${stream}`, BUDGET).replies, ["OK"]);
  });
}

Deno.test("RespDecoder.push() without a budget has one too: 18 MB of empty strings are more than one reply may hold", () => {
  const part = `*60000\r\n${"$0\r\n\r\n".repeat(60_000)}`;
  const decoder = new RespDecoder(() => {});
  let read = 0;
  const chunk = bytes(part);
  try {
    decoder.push(bytes("*60\r\n"));
    for (; read < 60; read++) decoder.push(chunk);
  } catch (error) {
    assertInstanceOf(error, ProtocolError);
  }
  assertLess(read, 18); // a million elements
});

Deno.test("RespDecoder.push() records no stack for an error, and leaves the recording of others as it was", () => {
  const limit = Error.stackTraceLimit;
  const { replies } = decode("-ERR no\r\n*1\r\n-\r\n", {});
  for (const error of replies.flat()) {
    assertInstanceOf(error, ReplyError);
    assertEquals(/^\s+at /mu.test(error.stack ?? ""), false);
  }
  assertEquals(replies.map(plain), [
    { error: "ERR no", prefix: "ERR" },
    [{ error: "", prefix: "" }],
  ]);
  assertEquals(Error.stackTraceLimit, limit);
  assertEquals(/^\s+at /mu.test(new ReplyError("ERR").stack!), true);
});

Deno.test("RespDecoder.push() reads errors where stacks cannot be switched off", () => {
  const before = Object.getOwnPropertyDescriptor(Error, "stackTraceLimit")!;
  Object.defineProperty(Error, "stackTraceLimit", { ...before, writable: false });
  try {
    assertEquals(decode("-ERR no\r\n", {}).replies.map(plain), [{
      error: "ERR no",
      prefix: "ERR",
    }]);
  } finally {
    Object.defineProperty(Error, "stackTraceLimit", before);
  }
});

Deno.test("RespDecoder.push() shows no password in errors, and no control characters", () => {
  const { replies } = decode("-ERR hunter2\x1b[31m\r\n*1\r\n-hunter2 no\r\n", {
    password: "hunter2",
  });
  assertEquals(replies.map(plain), [
    { error: "ERR ***\\u{1b}[31m", prefix: "ERR" },
    [{ error: "*** no", prefix: "***" }],
  ]);
});

Deno.test("RespDecoder.stop() within a reply ends the decoding of the chunk", () => {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => {
    replies.push(reply);
    decoder.stop();
  });
  decoder.push(bytes("+one\r\n+two\r\n?\r\n"));
  decoder.push(bytes("+three\r\n"));
  assertEquals(replies, ["one"]);
});

Deno.test("RespDecoder.elementsDecoded counts the elements of arrays, and no other replies", () => {
  const decoder = new RespDecoder(() => {});
  decoder.push(bytes("+OK\r\n:1\r\n$-1\r\n*0\r\n"));
  assertEquals(decoder.elementsDecoded, 0);
  decoder.push(bytes("*3\r\n:1\r\n*1\r\n:1\r\n-no\r\n"));
  assertEquals(decoder.elementsDecoded, 4);
});
