/** Runs each example where it belongs, and sees it do what it says. */

import { createRedlock } from "../../mod.ts";
import { connect } from "../../src/redis/mod.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRuntime } from "../../scripts/find_runtimes.ts";
import { bundle } from "../../scripts/package/bundle.ts";
import type { Consumer } from "../../scripts/package/consumer.ts";
import { findTools, nodePath } from "../../scripts/package/tools.ts";
import { type Outcome, runCases } from "./context.ts";
import { exclusive } from "../examples/http_statuses.ts";
import { expect, expectSame } from "./expect.ts";
import { eventually } from "../support/eventually.ts";
import { startBridge } from "../support/upstash_bridge.ts";
import { startProgram, startWorker } from "./processes.ts";
import { bundleWorker } from "./runtimes.ts";
import type { World } from "./world.ts";

const EXAMPLES = fileURLToPath(new URL("../examples", import.meta.url));
const SHARED_CLIENT = fileURLToPath(new URL("./runners/shared_client_worker.ts", import.meta.url));
const DURABLE_OBJECT = fileURLToPath(
  new URL("./runners/durable_object_worker.ts", import.meta.url),
);

/** How many ask for the same job at once. */
const REQUESTS = 5;

/** Runs every example. */
export async function runExamples(consumer: Consumer, world: World): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  // The first node is dead and the second hung: what the examples promise holds all the same.
  const [[deadUrl], [hungUrl]] = [world.deadUrls, world.hungUrls];
  const env = {
    HASP_NODES: [deadUrl, hungUrl, ...world.urls.slice(0, 3)].join(","),
    STORE_URL: world.urls[3]!,
  };
  await runCases((test) => {
    test("deno_deploy.ts does a job once", () => runDenoDeploy(env));
    test("cloudflare_worker.ts does a job once", () => runWorker(consumer, world, env));
    test("cloudflare_queue.ts does in its queue what one request began", () => {
      return runQueue(consumer, world, env);
    });
    test("a client that requests of a Worker share rejects, and says what to do", () => {
      return runSharedClient(consumer, world);
    });
    test("bun_server.ts does a job once", () => runBunServer(consumer, env));
    for (const workMs of [20, 500]) {
      test(`node_guard.cjs answers 200 and 409 if the work takes ${workMs} ms`, () => {
        return runNodeGuard(consumer, env, workMs);
      });
    }
    test("bullmq_processor.ts runs one job per account", () => runBullMq(consumer, env));
    test("bullmq_hand_over.ts has a worker finish what one request began", () => {
      return runBullMqHandOver(consumer, env);
    });
    test("upstash_worker.ts does a job once over HTTP", () => runUpstashWorker(consumer, world));
    test("upstash_node.ts does a job once over HTTP", () => runUpstashNode(consumer, world));
    test("durable_object_node.ts passes the suite of nodes", () => {
      return runDurableObject(consumer, world);
    });
    test("http_statuses.ts answers 200, 409 and 503", () => runHttpStatuses(world));
  }, (outcome) => outcomes.push(outcome));
  return outcomes;
}

async function runDenoDeploy(env: Record<string, string>): Promise<void> {
  await using server = startProgram(Deno.execPath(), [
    ...[
      "serve",
      "--no-prompt",
      "--no-check",
      "--allow-net=127.0.0.1",
      "--allow-env=HASP_NODES,STORE_URL",
    ],
    ...["--host=127.0.0.1", "--port=0", join(EXAMPLES, "deno_deploy.ts")],
  ], { env, heard: "stderr" });
  await expectOneDoes(await addressIn(server.nextLine()), "deno");
}

async function runBunServer(consumer: Consumer, env: Record<string, string>): Promise<void> {
  const script = await bundleExample(consumer, "bun_server");
  const bun = await findRuntime("bun");
  await using server = startProgram(bun, [script], { env: { ...env, PORT: "0" } });
  await expectOneDoes(await addressIn(server.nextLine()), "bun");
}

async function runWorker(
  consumer: Consumer,
  world: World,
  bindings: Record<string, string>,
): Promise<void> {
  const script = await bundleWorker(consumer, join(EXAMPLES, "cloudflare_worker.ts"));
  const node = await nodePath("node22");
  await using worker = await startWorker(node, script, bindings, world.authorityFile);
  const path = `/jobs/${crypto.randomUUID()}`;
  const responses = await worker.send({ path, times: REQUESTS });
  expectStatuses(responses.map(({ status }) => status));
}

async function runQueue(
  consumer: Consumer,
  world: World,
  bindings: Record<string, string>,
): Promise<void> {
  const script = await bundleWorker(consumer, join(EXAMPLES, "cloudflare_queue.ts"));
  const node = await nodePath("node22");
  await using worker = await startWorker(node, script, bindings, world.authorityFile, {
    queueProducers: { JOBS: "queue" },
    queueConsumers: { queue: { maxBatchTimeout: 0, maxRetries: 5 } },
  });
  await using store = await connect(bindings.STORE_URL);
  const path = `/jobs/${crypto.randomUUID()}`;
  for (let jobs = 1; jobs <= 2; jobs++) {
    const responses = await worker.send({ path, times: REQUESTS });
    const statuses = responses.map(({ status }) => status).sort().join();
    expectSame(statuses, "202,409,409,409,409", "the statuses");
    await eventually(async () => {
      const done = await store.send(["KEYS", `done:${path}:*`]) as string[];
      expectSame(done.length, jobs, "how often it was done");
      await using redlock = createRedlock(world.urls.slice(0, 3));
      expect(!(await redlock.inspect(path)).held, "the lock was not released");
    });
  }
}

async function runDurableObject(consumer: Consumer, world: World): Promise<void> {
  const script = await bundleWorker(consumer, DURABLE_OBJECT);
  const node = await nodePath("node22");
  await using worker = await startWorker(node, script, {}, world.authorityFile, {
    durableObjects: { LOCKS: { className: "LockStore", useSQLite: true } },
  });
  const [{ status, body }] = await worker.send({ path: "/" });
  expectSame(status, 200, "the status");
  const outcomes: Outcome[] = JSON.parse(body);
  expect(outcomes.length > 10, `${outcomes.length} cases ran`);
  const failed = outcomes.filter(({ error }) => error).map(({ name, error }) =>
    `${name}: ${error}`
  );
  expectSame(failed.join("\n"), "", "what failed");
}

async function runSharedClient(consumer: Consumer, world: World): Promise<void> {
  const script = await bundleWorker(consumer, SHARED_CLIENT);
  const bindings = { HASP_NODES: world.urls.slice(0, 3).join(",") };
  const node = await nodePath("node22");
  await using worker = await startWorker(node, script, bindings, world.authorityFile);
  const [first] = await worker.send({ path: `/${crypto.randomUUID()}` });
  expectSame(first.body, "locked", "the first request");
  const later = await worker.send({ path: `/${crypto.randomUUID()}`, times: REQUESTS });
  for (const { status, body } of later) {
    expectSame(status, 500, "the status of a later request");
    if (!body.includes("create the client in each request")) throw new Error(body);
  }
}

async function runNodeGuard(
  consumer: Consumer,
  env: Record<string, string>,
  workMs: number,
): Promise<void> {
  const [node, script] = [await nodePath("node22"), await copyExample(consumer, "node_guard.cjs")];
  const code = await Deno.readTextFile(script);
  await Deno.writeTextFile(script, code.replace(/(?<=await setTimeout\()\d+/u, `${workMs}`));
  await using server = startProgram(node, [script], { env: { ...env, PORT: "0" } });
  const url = `${await addressIn(server.nextLine())}//:/${crypto.randomUUID()}`; // no URL itself
  const statuses = await Promise.all([1, 2].map(async () => {
    const response = await fetch(url, { method: "POST" });
    await response.body?.cancel();
    return response.status;
  }));
  expectSame(statuses.sort().join(), "200,409", "the statuses");
}

function runBullMq(consumer: Consumer, env: Record<string, string>): Promise<void> {
  return runBullMqHost(consumer, env, "bullmq_host", "8 jobs, 1 at once");
}

function runBullMqHandOver(consumer: Consumer, env: Record<string, string>): Promise<void> {
  const expected = "2 added, 4 refused, 1 taken back, 4 tries, 1 at once";
  return runBullMqHost(consumer, env, "bullmq_hand_over_host", expected);
}

async function runBullMqHost(
  consumer: Consumer,
  env: Record<string, string>,
  name: string,
  expected: string,
): Promise<void> {
  const host = fileURLToPath(new URL(`./runners/${name}.ts`, import.meta.url));
  const script = join(consumer.folder, `${name}.js`);
  await bundle(host, script, { platform: "node" });
  const module = join(await findTools("bullmq"), "bullmq/dist/cjs/index.js");
  const node = await nodePath("node22");
  await using program = startProgram(node, [script, module, env.STORE_URL], { env });
  expectSame(await program.nextLine(), expected, "what came of the jobs");
  expectSame((await program.end()).code, 0, "exit status");
}

async function runUpstashWorker(consumer: Consumer, world: World): Promise<void> {
  await using databases = startDatabases(world);
  const script = await bundleWorker(consumer, join(EXAMPLES, "upstash_worker.ts"));
  const node = await nodePath("node22");
  await using worker = await startWorker(node, script, databases.env, world.authorityFile);
  const path = `/jobs/${crypto.randomUUID()}`;
  const responses = await worker.send({ path, times: REQUESTS });
  expectStatuses(responses.map(({ status }) => status));
}

async function runUpstashNode(consumer: Consumer, world: World): Promise<void> {
  await using databases = startDatabases(world);
  const script = join(consumer.folder, "upstash_node.js");
  await bundle(join(EXAMPLES, "upstash_node.ts"), script, { platform: "node" });
  const node = await nodePath("node20");
  const name = crypto.randomUUID();
  const statuses = await Promise.all(Array.from({ length: REQUESTS }, async () => {
    await using program = startProgram(node, [script, name], { env: databases.env });
    const line = await program.nextLine();
    expectSame((await program.end()).code, 0, "exit status");
    return Number(line);
  }));
  expectStatuses(statuses);
}

/**
 * Servers over HTTP, of which the first is dead and the second hung, and where the job leaves its
 * result.
 */
function startDatabases({ urls, deadUrls, hungUrls }: World) {
  const stack = new AsyncDisposableStack();
  const store = stack.use(startResultsStore());
  const bridges = [deadUrls[0]!, hungUrls[0]!, ...urls.slice(0, 3)].map((url) => {
    return stack.use(startBridge(url));
  });
  const databases = bridges.map(({ url, token }) => ({ url, token }));
  return {
    env: { DATABASES: JSON.stringify(databases), STORE_URL: store.url },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function runHttpStatuses({ urls, deadUrls }: World): Promise<void> {
  await using redlock = createRedlock(urls);
  const handler = exclusive(redlock, () => Promise.resolve(new Response("done")));
  const request = () => new Request(`http://localhost/${crypto.randomUUID()}`);
  expectSame((await handler(request())).status, 200, "the status of a free resource");
  const held = request();
  {
    await using lock = await redlock.acquire(new URL(held.url).pathname);
    expect(lock.held, "not held");
    expectSame((await handler(held)).status, 409, "the status of a held resource");
  }
  await using lonely = createRedlock([...deadUrls, ...urls.slice(0, 2)]);
  const unable = exclusive(lonely, () => Promise.resolve(new Response("done")));
  expectSame((await unable(request())).status, 503, "the status without a quorum");
}

/** Bundles an example beside the installed package, which it imports by its name. */
async function bundleExample(consumer: Consumer, name: string): Promise<string> {
  const script = join(consumer.folder, `${name}.js`);
  await bundle(join(EXAMPLES, `${name}.ts`), script, { platform: "node" });
  return script;
}

/** Copies an example in JavaScript beside the installed package. */
async function copyExample(consumer: Consumer, name: string): Promise<string> {
  const script = join(consumer.folder, name);
  await Deno.copyFile(join(EXAMPLES, name), script);
  return script;
}

/** The address in the line by which a server says that it listens. */
async function addressIn(line: Promise<string>): Promise<string> {
  const [address] = (await line).match(/http:\/\/[\d.:]+/) ?? [];
  if (address === undefined) throw new Error(`no address in "${await line}"`);
  return address;
}

async function expectOneDoes(address: string, name: string): Promise<void> {
  const url = `${address}/jobs/${name}-${crypto.randomUUID()}`;
  const statuses = await Promise.all(Array.from({ length: REQUESTS }, async () => {
    const response = await fetch(url, { method: "POST" });
    await response.body?.cancel();
    return response.status;
  }));
  expectStatuses(statuses);
}

function expectStatuses(statuses: number[]): void {
  expectSame(statuses.sort().join(), "200,200,200,200,201", "the statuses");
}

/**
 * Starts a store of results over HTTP: `PUT` writes one, and `GET` finds it. Neither is quick, so
 * that two jobs at the same time would both find nothing.
 */
function startResultsStore() {
  const results = new Map<string, string>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const found = results.get(pathname);
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (request.method !== "PUT") return new Response(found, { status: found ? 200 : 404 });
    results.set(pathname, await request.text());
    return new Response("stored", { status: 201 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
