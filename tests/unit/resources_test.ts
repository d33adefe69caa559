import { assertEquals, assertThrows } from "@std/assert";
import { checkResources, RESOURCES_MAX } from "../../src/resources.ts";

const NOT_STRINGS = "'resource' must be a non-empty string or a non-empty array of them";

Deno.test("checkResources() makes a list of one resource, of any well-formed text", () => {
  for (const name of ["a", " ", "\0", "a\r\nb", "é", "😀", "{a}:b"]) {
    assertEquals(checkResources("acquire lock", name, ""), [name]);
  }
});

Deno.test("checkResources() copies a list, which the caller may change afterwards", () => {
  const given = ["a", "b"];
  const resources = checkResources("acquire lock", given, "");
  given.push("c");
  assertEquals(resources, ["a", "b"]);
});

Deno.test("checkResources() takes as many resources as one lock may have", () => {
  const resources = Array.from({ length: RESOURCES_MAX }, (_, index) => `${index}`);
  assertEquals(checkResources("acquire lock", resources, "").length, RESOURCES_MAX);
  assertEquals(
    assertThrows(() => checkResources("acquire lock", [...resources, "x"], ""), RangeError).message,
    "Cannot acquire lock as 'resource' must have at most 1000 elements: current value is 1001",
  );
});

Deno.test("checkResources() refuses what is no non-empty string, twice the same, and text that is not well-formed", () => {
  const unformed =
    "'resource' must be well-formed Unicode, without lone surrogates: current type is 'string'";
  for (
    const [reason, ...resources] of [
      [`${NOT_STRINGS}: current type is 'empty string'`, ""],
      [`${NOT_STRINGS}: current type is 'empty Array'`, []],
      [`${NOT_STRINGS}: current type is 'empty string' at index 1`, ["a", ""], ["a", "", 5]],
      [`${NOT_STRINGS}: current type is 'number' at index 0`, [5]],
      [`${NOT_STRINGS}: current type is 'undefined'`, undefined],
      [`${NOT_STRINGS}: current type is 'Promise'`, Promise.resolve("a")],
      ['resource "a" is listed twice', ["a", "a"]],
      ['resource "b" is listed twice', ["a", "b", "c", "b", "a"]],
      [unformed, "\ud800", ["a", "b\udc00"]],
    ] as const
  ) {
    for (const resource of resources) {
      const check = () => checkResources("acquire lock", resource as string, "");
      assertEquals(assertThrows(check, TypeError).message, `Cannot acquire lock as ${reason}`);
    }
  }
});

Deno.test("checkResources() refuses keys that begin as the library's own do", () => {
  const keys = ["|hasp:born", "|hasp:", "|hasp:fence:a", "ha|sp:queue:a", "hasp:|a", "hasp|:a"];
  for (const key of [...keys, "hasp:lock:|a"]) {
    const [keyPrefix, resource] = key.split("|"); // the prefix of the client, and the resource
    for (const given of [resource, [resource, "b"]]) {
      assertEquals(
        assertThrows(() => checkResources("acquire lock", given, keyPrefix), RangeError).message,
        `Cannot acquire lock as no key may begin with 'hasp:': current key is "${keyPrefix}${resource}"`,
      );
    }
  }
});

Deno.test("checkResources() takes what begins like the library's own names, and what has them further back", () => {
  for (
    const [keyPrefix, resource] of [["", "hasp"], ["", "Hasp:a"], ["", " hasp:a"], ["h", "hasp:a"]]
      .concat([["lock:", "hasp:born"], ["hasp-", "a"]])
  ) {
    assertEquals(checkResources("acquire lock", resource, keyPrefix), [resource]);
  }
});
