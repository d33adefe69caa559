import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { messageOf, toError } from "../../src/to_error.ts";
import { HOSTILE } from "../support/hostile.ts";

Deno.test("toError() makes an error of everything else, with its message", () => {
  const object = { name: "E", message: "of an object" };
  const errors = ["text", 5, Symbol("s"), object, {}, null].map(toError);
  const messages = ["text", "5", "Symbol(s)", "of an object", "[object Object]", "null"];
  assertEquals(errors.map(({ message }) => message), messages);
  for (const error of errors) {
    assertEquals([error instanceof Error, "permanent" in error], [true, false]);
  }
});

Deno.test("toError() calls no accessor of an error, and keeps none", () => {
  let calls = 0;
  const error = Object.defineProperty(new Error("x"), "detail", { get: () => ++calls });
  assertEquals(["detail" in toError(error), calls], [false, 0]);
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
