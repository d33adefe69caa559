import { assertEquals } from "@std/assert";
import { type Globals, nameIn } from "../../src/process_name.ts";

const permissions = (state: string) => ({ querySync: () => ({ state }) });
const os = (host: string) => ({ getBuiltinModule: () => ({ hostname: () => host }) });
const fails = () => {
  throw new Error("not here");
};

for (
  const [what, globals, name] of [
    ["Node or Bun", { process: { pid: 12, ...os("web-3") } }, "web-3:12"],
    ["Node before 20.16", { process: { pid: 12 } }, ""],
    ["a host with a strange name", { process: { pid: 12, ...os("w b\u00fc\n") } }, "w?b??:12"],
    [
      "a host with a long name",
      { process: { pid: 12, ...os("x".repeat(99)) } },
      "x".repeat(61) + ":12",
    ],
    ["an emulation of Node", { process: { pid: 12, getBuiltinModule: fails } }, ""],
    ["an emulation without os", { process: { pid: 12, getBuiltinModule: () => undefined } }, ""],
    [
      "a worker that emulates Node",
      { navigator: { userAgent: "Cloudflare-Workers" }, process: { pid: 12, ...os("localhost") } },
      "",
    ],
    ["a browser", { navigator: { userAgent: "Mozilla/5.0" } }, ""],
    [
      "Deno with the permission",
      { Deno: { pid: 12, hostname: () => "web-3", permissions: permissions("granted") } },
      "web-3:12",
    ],
    [
      "Deno without the permission, which it does not ask for",
      { Deno: { pid: 12, hostname: fails, permissions: permissions("prompt") } },
      "",
    ],
  ] as [string, Globals, string][]
) {
  Deno.test(`the name of the process in ${what} is ${JSON.stringify(name)}`, () => {
    assertEquals(nameIn(globals), name);
  });
}
