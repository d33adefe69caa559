/**
 * How many of the exported symbols JSR counts as documented: it reads all entry points at once, and
 * a symbol that a second one exports again counts there by the comment in front of its name in the
 * export.
 */

import { assert, assertGreaterOrEqual } from "@std/assert";
import { plainCommand } from "../support/plain_command.ts";

/** The least share that every entry point is held to. */
const SHARE_MIN = 0.95;

interface Documentation {
  readonly nodes: Readonly<Record<string, EntryPoint>>;
}

interface EntryPoint {
  readonly module_doc?: { readonly doc?: string };
  readonly symbols: readonly {
    readonly name: string;
    readonly declarations: readonly { readonly declarationKind: string; readonly jsDoc?: object }[];
  }[];
}

const root = new URL("../../", import.meta.url);
const { exports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));
const { success, stdout, stderr } = await plainCommand(Deno.execPath(), {
  args: ["doc", "--json", ...Object.values<string>(exports)],
  cwd: root,
}).output();
const text = new TextDecoder();
assert(success, text.decode(stderr));
const { nodes }: Documentation = JSON.parse(text.decode(stdout));

for (const [name, path] of Object.entries<string>(exports)) {
  const { module_doc, symbols } = nodes[new URL(path, root).href]!;

  Deno.test(`JSR counts 95 % of the symbols of "${name}" as documented`, () => {
    const counted = symbols.flatMap(({ name, declarations }) =>
      declarations.filter(({ declarationKind }) => declarationKind === "export")
        .map(({ jsDoc }) => ({ name, documented: jsDoc !== undefined }))
    );
    const missing = counted.filter(({ documented }) => !documented).map(({ name }) => name);
    const share = 1 - missing.length / counted.length;
    assertGreaterOrEqual(share, SHARE_MIN, `${path}: no comment on ${missing.join(", ")}`);
  });

  Deno.test(`JSR finds the module documentation of "${name}"`, () => {
    assert(module_doc?.doc, path);
  });
}
