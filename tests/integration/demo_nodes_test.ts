/** The nodes of the demo. */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";

const STATES_ITS_VERSION = '[ "$1" = --version ] && echo "Redis server v=7.0.0" && exit 0';

Deno.test("the demo falls back to memory where REDIS_SERVER names what is no server", async () => {
  await expectMemory("exit 1", "which does not run as a Redis server");
});

Deno.test("the demo falls back to memory where a redis-server does not start", async () => {
  await expectMemory(`${STATES_ITS_VERSION}\necho "no memory left" >&2; exit 1`, "no memory left");
});

/** Prints what the nodes of the demo are, and what they answer. */
const PROGRAM = `
import { startNodes } from ${urlOf("../../scripts/demo/nodes.ts")};
import { query } from ${urlOf("../support/query.ts")};
await using started = await startNodes("any", 2);
const { description, excuse, nodes } = started;
const ports = nodes.map(({ url }) => Number(new URL(url).port));
const answers = await Promise.all(ports.map((port) => query({ port }, ["PING"])));
console.log(JSON.stringify({ description, excuse, answers }));
`;

function urlOf(path: string): string {
  return JSON.stringify(new URL(path, import.meta.url));
}

/** Starts the demo's nodes while the only redis-server is a shell script, in a process with a variable of its own. */
async function expectMemory(script: string, expected: string): Promise<void> {
  await using folder = await makeFolder();
  const file = `${folder.path}/redis-server`;
  await Deno.writeTextFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const importMap = fileURLToPath(new URL("../support/std/import_map.json", import.meta.url));
  const { stdout, stderr } = await plainCommand(Deno.execPath(), {
    args: ["eval", "--ext=ts", "--quiet", "--no-config", `--import-map=${importMap}`, PROGRAM],
    env: { REDIS_SERVER: file },
  }).output();
  const printed = new TextDecoder().decode(stdout);
  assert(printed !== "", new TextDecoder().decode(stderr));
  const { description, excuse, answers } = JSON.parse(printed);
  assertStringIncludes(description, "in-memory");
  assertStringIncludes(excuse, expected);
  assertEquals(answers, ["PONG", "PONG"]);
}
