import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { checkResources, RESOURCES_MAX } from "../../src/resources.ts";

const NOT_STRINGS = "'resource' must be a non-empty string or an array of non-empty strings";

Deno.test("checkResources() makes a list of one resource", () => {
  assertEquals(checkResources("acquire lock", "a", ""), ["a"]);
});

Deno.test("checkResources() copies a list, which the caller may change afterwards", () => {
  const given = ["a", "b"];
  const resources = checkResources("acquire lock", given, "");
  given.push("c");
  assertEquals(resources, ["a", "b"]);
});

Deno.test("checkResources() takes any well-formed text", () => {
  for (const name of [" ", "\0", "a\r\nb", "é", "😀", "{a}:b"]) {
    assertStrictEquals(checkResources("acquire lock", name, "")[0], name);
  }
});

Deno.test("checkResources() takes as many resources as one lock may have", () => {
  const resources = Array.from({ length: RESOURCES_MAX }, (_, index) => `${index}`);
  assertEquals(checkResources("acquire lock", resources, "").length, RESOURCES_MAX);
  assertEquals(
    assertThrows(() => checkResources("acquire lock", [...resources, "x"], ""), RangeError).message,
    "Cannot acquire lock as 'resource' must have at most 1000 elements: current value is 1001",
  );
});

for (
  const [resource, reason] of [
    ["", NOT_STRINGS],
    [[""], NOT_STRINGS],
    [["a", ""], NOT_STRINGS],
    [5, NOT_STRINGS],
    [null, NOT_STRINGS],
    [undefined, NOT_STRINGS],
    [["a", 5], NOT_STRINGS],
    [[], "'resource' must not be an empty array"],
    [["a", "a"], 'resource "a" is listed twice'],
    [["a", "b", "c", "b", "a"], 'resource "b" is listed twice'],
    ["\ud800", "'resource' must be well-formed Unicode, without lone surrogates"],
    [["a", "b\udc00"], "'resource' must be well-formed Unicode, without lone surrogates"],
  ] as const
) {
  Deno.test(`checkResources() refuses ${JSON.stringify(resource)}`, () => {
    assertEquals(
      assertThrows(() => checkResources("acquire lock", resource as string, ""), TypeError).message,
      `Cannot acquire lock as ${reason}`,
    );
  });
}

for (
  const [keyPrefix, resource] of [
    ["", "hasp:born"],
    ["", "hasp:"],
    ["", "hasp:fence:a"],
    ["ha", "sp:queue:a"],
    ["hasp:", "a"],
    ["hasp:lock:", "a"],
    ["hasp", ":a"],
  ] as const
) {
  Deno.test(`checkResources() refuses ${JSON.stringify(resource)} with the prefix ${JSON.stringify(keyPrefix)}, which is the library's own`, () => {
    for (const given of [resource, [resource, "b"]]) {
      assertEquals(
        assertThrows(() => checkResources("acquire lock", given, keyPrefix), RangeError).message,
        `Cannot acquire lock as no key may begin with 'hasp:': current key is "${keyPrefix}${resource}"`,
      );
    }
  });
}

Deno.test("checkResources() takes what begins like the library's own names, and what has them further back", () => {
  for (
    const [keyPrefix, resource] of [["", "hasp"], ["", "Hasp:a"], ["", " hasp:a"], ["h", "hasp:a"]]
      .concat([["lock:", "hasp:born"], ["hasp-", "a"]])
  ) {
    assertEquals(checkResources("acquire lock", resource, keyPrefix), [resource]);
  }
});
