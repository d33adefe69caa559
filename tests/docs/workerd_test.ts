/** The fences of code that are marked for Cloudflare Workers do what they say there. */

import { assertEquals, assertGreater } from "@std/assert";
import { startNodes } from "@hasp/redlock/testing";
import { startConsumer } from "../../scripts/package/consumer.ts";
import { nodePath } from "../../scripts/package/tools.ts";
import { startWorker } from "../runtime/processes.ts";
import { bundleWorker } from "../runtime/runtimes.ts";
import { fencesMarked, promisedOutput, titleOf } from "./pages.ts";

const fences = fencesMarked("workerd");

/** A Worker cannot listen, so the servers in memory run outside of it. */
const START_NODES = `const startNodes = (count: number) => Promise.resolve({
  addresses: env.NODES.split(",").slice(0, count),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});`;

/** A module that runs a fence and returns what it prints. */
function moduleOf(code: string): string {
  const listens = /^import \{ startNodes \} from .*;\n/mu;
  const imports = code.replace(listens, "").match(/^import .*;$/gmu) ?? [];
  return `${imports.join("\n")}
export async function run(env: { NODES: string }): Promise<string[]> {
  const printed: string[] = [];
  const console = { log: (...values: unknown[]) => void printed.push(values.map(String).join(" ")) };
  ${listens.test(code) ? START_NODES : ""}
  ${code.replaceAll(/^import .*;\n/gmu, "")}
  return printed;
}
`;
}

/** A Worker that runs the fence whose number is its path. */
function workerOf(count: number): string {
  const numbers = Array.from({ length: count }, (_, at) => at);
  return `${numbers.map((at) => `import { run as run${at} } from "./fence_${at}.ts";`).join("\n")}
const runs = [${numbers.map((at) => `run${at}`).join(", ")}];
export default {
  async fetch(request: Request, env: { NODES: string }): Promise<Response> {
    return Response.json(await runs[Number(new URL(request.url).pathname.slice(1))](env));
  },
};
`;
}

Deno.test("docs: examples print what they say in workerd, with the npm package", async (t) => {
  assertGreater(fences.length, 5);
  await using nodes = await startNodes(3);
  await using consumer = await startConsumer();
  for (const [at, { code }] of fences.entries()) {
    await Deno.writeTextFile(`${consumer.folder}/fence_${at}.ts`, moduleOf(code));
  }
  await Deno.writeTextFile(`${consumer.folder}/fences.ts`, workerOf(fences.length));
  const script = await bundleWorker(consumer, `${consumer.folder}/fences.ts`);
  const bindings = { NODES: nodes.addresses.join() };
  await using worker = await startWorker(await nodePath("node22"), script, bindings, "");
  for (const [at, fence] of fences.entries()) {
    await t.step(titleOf(fence), async () => {
      const [{ status, body }] = await worker.send({ path: `/${at}` });
      assertEquals(status, 200, body);
      assertEquals(JSON.parse(body), promisedOutput(fence.code));
    });
  }
});
