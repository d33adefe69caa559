/** A route of Next's edge runtime, built by Next and run. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { createRedlock } from "@hasp/redlock";
import { startConsumer } from "../../scripts/package/consumer.ts";
import { findTools, nodePath, succeed } from "../../scripts/package/tools.ts";
import { startProgram } from "../runtime/processes.ts";
import { startServer } from "../support/servers.ts";
import { startBridge } from "../support/upstash_bridge.ts";

/** How long a build may take, in milliseconds: more than ten times what it needs. */
const BUILD_WITHIN_MS = 600_000;

const EXAMPLES = new URL("../examples/", import.meta.url);

/** Answers with what a client says that needs TCP. */
const TCP_ROUTE = `
import { createRedlock } from "@hasp/redlock";
export const runtime = "edge";
export async function GET() {
  const redlock = createRedlock(["redis://127.0.0.1"]);
  const error = await redlock.acquire("job", { waitMs: 0 }).catch((error) => error);
  return new Response(error.message);
}
`;

const LAYOUT = `
export default ({ children }) => <html><body>{children}</body></html>;
`;

Deno.test("Next builds a route of its edge runtime, and the route locks", async () => {
  await using consumer = await startConsumer();
  const { folder } = consumer;
  await addNext(folder);
  const next = [join(folder, "node_modules/next/dist/bin/next")];
  const node = await nodePath("node22");
  const env = { NEXT_TELEMETRY_DISABLED: "1", PATH: Deno.env.get("PATH")! };
  const options = { cwd: folder, env, withinMs: BUILD_WITHIN_MS };
  await succeed(node, [...next, "build"], options);

  await using server = await startServer();
  await using bridge = startBridge(server.url);
  await using program = startProgram(node, [...next, "start", folder, "-H127.0.0.1", "-p0"], {
    env: { ...env, UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token },
  });
  const url = await listening(program);
  const post = async () => {
    const response = await fetch(`${url}/jobs`, { method: "POST" });
    return [response.status, await response.json()];
  };
  assertEquals(await post(), [200, { done: true }]);
  await using redlock = createRedlock([server.url]);
  const lock = await redlock.acquire("job");
  assertEquals(await post(), [409, { done: false }]);
  await lock.release();
  assertEquals(await post(), [200, { done: true }]);
  const tcp = await (await fetch(`${url}/tcp`)).text();
  assertStringIncludes(tcp, "this runtime has no TCP sockets: use a node over fetch");
});

/** Makes a project of Next of the folder. */
async function addNext(folder: string): Promise<void> {
  const tools = await findTools("next");
  await succeed("cp", ["-R", `${tools}/.`, join(folder, "node_modules")]);
  for (const route of ["jobs", "tcp"]) {
    await Deno.mkdir(join(folder, "app", route), { recursive: true });
  }
  await Deno.writeTextFile(join(folder, "app/layout.js"), LAYOUT);
  await Deno.writeTextFile(join(folder, "app/tcp/route.js"), TCP_ROUTE);
  await Deno.copyFile(new URL("next_route.js", EXAMPLES), join(folder, "app/jobs/route.js"));
}

/** The address that the program says that it listens on. */
async function listening(program: { nextLine(): Promise<string> }): Promise<string> {
  for (;;) {
    const [url] = (await program.nextLine()).match(/http:\/\/127\.0\.0\.1:\d+/u) ?? [];
    if (url) return url;
  }
}
