import { assertEquals, assertStrictEquals } from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { textReply } from "../../../src/redis/reply.ts";

const encoder = new TextEncoder();

Deno.test("textReply() reads bulk strings as UTF-8, also inside arrays", () => {
  assertEquals(textReply([encoder.encode("né"), [encoder.encode("")], 1, 2n, null, "OK"]), [
    "né",
    [""],
    1,
    2n,
    null,
    "OK",
  ]);
});

Deno.test("textReply() keeps a byte order mark, which is a part of the value", () => {
  assertEquals(textReply(encoder.encode("\ufeffx")), "\ufeffx");
});

Deno.test("textReply() leaves an error as it is", () => {
  const error = new ReplyError("ERR no");
  assertStrictEquals((textReply([error]) as unknown[])[0], error);
});
