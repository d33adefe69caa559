/** Programs whose output tests compare print no colours. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { stripVTControlCharacters } from "node:util";
import { plainCommand } from "../support/plain_command.ts";
import { findRuntimes } from "../support/programs.ts";

const PROGRAM = "console.log(true, { held: false });";

/** Runs a command of plainCommand(), in a process whose environment asks for colours. */
const RUNNER = `
import { plainCommand } from ${
  JSON.stringify(new URL("../support/plain_command.ts", import.meta.url))
};
const [path, ...args] = Deno.args;
const { stdout, stderr } = await plainCommand(path, { args }).output();
await Deno.stdout.write(stdout);
await Deno.stderr.write(stderr);
`;

for (const { name, path, missing } of await findRuntimes()) {
  Deno.test({
    name: `plainCommand() prints no colours in ${name}, although FORCE_COLOR is set`,
    ignore: missing !== undefined,
    async fn() {
      const { stdout, stderr } = await plainCommand(Deno.execPath(), {
        args: [
          ...["eval", "--ext=ts", "--quiet", "--no-config", RUNNER],
          ...[path!, name === "deno" ? "eval" : "--eval", PROGRAM],
        ],
        env: { FORCE_COLOR: "1", NO_COLOR: "" },
      }).output();
      const text = new TextDecoder().decode(stdout);
      assertStringIncludes(text, "true");
      assertEquals(text, stripVTControlCharacters(text));
      assertEquals(new TextDecoder().decode(stderr), "");
    },
  });
}
