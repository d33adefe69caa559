import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { messageOf, toError } from "../../src/to_error.ts";
import { HOSTILE } from "../support/hostile.ts";

Deno.test("toError() makes an error of everything else, with its message", () => {
  const messages = ["text", 5, Symbol("s"), { message: "of an object" }, null].map((thrown) =>
    toError(thrown).message
  );
  assertEquals(messages, ["text", "5", "Symbol(s)", "of an object", "null"]);
});

Deno.test("toError() copies name, code and permanence of an error that it cannot keep", () => {
  class StoreError extends Error {
    override readonly name = "StoreError";
    readonly code = "STORE";
    readonly permanent = true;
    readonly toJSON = () => ({});
  }
  const error = toError(new StoreError("x".repeat(2_000)));
  const { name, message, code, permanent } = error as StoreError;
  assertEquals([name, message, code, permanent], [
    "StoreError",
    `${"x".repeat(1_024)}…`,
    "STORE",
    true,
  ]);
});

for (const [what, make] of Object.entries(HOSTILE)) {
  Deno.test(`toError() and messageOf() make what can be read and printed of ${what}`, () => {
    const error = toError(make());
    assertInstanceOf(error, Error);
    assertEquals(typeof messageOf(make()), "string");
    const nested = new Error("x", { cause: new AggregateError([error], "y", { cause: error }) });
    for (const shown of [error.message, error.name, error.stack ?? "", Deno.inspect(nested)]) {
      assertEquals(typeof shown, "string");
      assert(shown.length < 100_000);
    }
    assertStrictEquals(toError(error), error);
  });
}
