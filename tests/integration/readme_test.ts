import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { plainCommand } from "../support/plain_command.ts";

const readme = await Deno.readTextFile(new URL("../../README.md", import.meta.url));
const root = new URL("../../", import.meta.url);
const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));

/** The TypeScript examples, each with the line that it begins at. */
function examples(): { line: number; code: string }[] {
  return [...readme.matchAll(/^```ts\n(.*?)^```$/gmsu)].map((match) => ({
    line: readme.slice(0, match.index).split("\n").length + 1,
    code: match[1],
  }));
}

/** What an example says that it prints: the comments behind its `console.log` calls. */
function promisedOutput(code: string): string[] {
  return [...code.matchAll(/^ *console\.log\(.*\); \/\/ (.*)$/gmu)].map((match) => match[1]);
}

async function output(code: string): Promise<string[]> {
  const folder = await Deno.makeTempDir();
  try {
    const imports = {
      "@hasp/redlock": new URL("mod.ts", root).href,
      "@hasp/redlock/testing": new URL("src/testing/mod.ts", root).href,
      "@opentelemetry/api": config.imports["@opentelemetry/api"],
    };
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ imports }));
    await Deno.writeTextFile(`${folder}/example.ts`, code);
    const { success, stdout, stderr } = await plainCommand(Deno.execPath(), {
      args: ["run", "--quiet", "--no-prompt", "--allow-net=127.0.0.1", "example.ts"],
      cwd: folder,
    }).output();
    assert(success, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

for (const { line, code } of examples()) {
  Deno.test(`README example in line ${line} prints what it says, pasted into an empty folder`, async () => {
    assertEquals(await output(code), promisedOutput(code));
  });
}

const examplesFolder = new URL("tests/runtime/examples/", root);

for await (const { name } of Deno.readDir(examplesFolder)) {
  Deno.test(`README shows ${name} as the runtime suite runs it`, async () => {
    const example = await Deno.readTextFile(new URL(name, examplesFolder));
    const [, code] = example.split(/^ \*\/\n\n/mu);
    assertStringIncludes(readme, example.slice(example.indexOf(code)));
  });
}
