/**
 * The module and the decorator of the page on NestJS, compiled as TypeScript compiles a program of
 * Nest.
 */

import { assertEquals } from "@std/assert";
import { startNodes } from "@hasp/redlock/testing";
import ts from "typescript";
import { makeFolder } from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";
import { fencesMarked, ROOT } from "./pages.ts";

/** A program that locks a method by the page's decorator, and calls it twice at once. */
const PROGRAM = `
import { injected, modules } from "@nestjs/common";
import { Locked, RedlockModule } from "./module.js";

class Payments {
  async pay(id) {
    await new Promise((done) => setTimeout(done, 50));
    return "paid " + id;
  }
}
const descriptor = Object.getOwnPropertyDescriptor(Payments.prototype, "pay");
Locked((id) => "pay:" + id, { waitMs: 0 })(Payments.prototype, "pay", descriptor);
Object.defineProperty(Payments.prototype, "pay", descriptor);

const redlock = modules.get(RedlockModule).providers[0].useFactory();
const payments = new Payments();
payments[injected.get(Payments.prototype)] = redlock;
const ids = ["1", "1", "2"];
const results = await Promise.all(ids.map((id) => payments.pay(id).catch(({ code }) => code)));
console.log(results.sort().join());
await new RedlockModule(redlock).onApplicationShutdown();
console.log(await payments.pay("3").catch(({ code }) => code));
`;

Deno.test("docs: the decorator for NestJS runs a method once at a time, and the module closes the client", async () => {
  const [fence] = fencesMarked("nest");
  const { outputText, diagnostics } = ts.transpileModule(fence.code, {
    compilerOptions: {
      experimentalDecorators: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
    },
    reportDiagnostics: true,
  });
  assertEquals(diagnostics, []);
  await using nodes = await startNodes(1);
  await using folder = await makeFolder();
  const imports = {
    "@hasp/redlock": new URL("mod.ts", ROOT).href,
    "@nestjs/common": new URL("tests/support/nestjs.ts", ROOT).href,
  };
  await Deno.writeTextFile(`${folder.path}/deno.json`, JSON.stringify({ imports }));
  await Deno.writeTextFile(`${folder.path}/module.js`, outputText);
  await Deno.writeTextFile(`${folder.path}/main.js`, PROGRAM);
  const { stdout, stderr } = await plainCommand(Deno.execPath(), {
    args: ["run", "--quiet", "-A", "main.js"],
    cwd: folder.path,
    env: { REDIS_URL: nodes.addresses[0] },
  }).output();
  const decoder = new TextDecoder();
  assertEquals(decoder.decode(stderr), "");
  assertEquals(decoder.decode(stdout), "LOCK_HELD,paid 1,paid 2\nCLOSED\n");
});
