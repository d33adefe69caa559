/** Programs whose output tests compare print no colours. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { stripVTControlCharacters } from "node:util";
import { plainCommand } from "../support/plain_command.ts";
import { findRuntimes } from "../support/programs.ts";

const PROGRAM = "console.log(true, { held: false });";

for (const { name, path, missing } of await findRuntimes()) {
  Deno.test({
    name: `plainCommand() prints no colours in ${name}, although FORCE_COLOR is set`,
    ignore: missing !== undefined,
    async fn() {
      const before = Deno.env.get("FORCE_COLOR");
      Deno.env.set("FORCE_COLOR", "1");
      try {
        const args = name === "deno" ? ["eval", PROGRAM] : ["--eval", PROGRAM];
        const { stdout, stderr } = await plainCommand(path!, { args }).output();
        const text = new TextDecoder().decode(stdout);
        assertStringIncludes(text, "true");
        assertEquals(text, stripVTControlCharacters(text));
        assertEquals(new TextDecoder().decode(stderr), "");
      } finally {
        if (before === undefined) Deno.env.delete("FORCE_COLOR");
        else Deno.env.set("FORCE_COLOR", before);
      }
    },
  });
}
