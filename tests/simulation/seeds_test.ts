import { assert, assertEquals } from "@std/assert";
import { findRuntime } from "../../scripts/find_runtimes.ts";
import { plainCommand } from "../support/plain_command.ts";
import { run } from "./support/run.ts";
import { isSound, shrink } from "./support/shrink.ts";
import { swarmPlan } from "./support/swarm.ts";

/**
 * How many seeds are run each time, and for how long at the most, in milliseconds: machines differ.
 */
const SEEDS = 250;
const SEEDS_MS = 15_000;

Deno.test("a swarm of seeds shows no violation", async () => {
  const endMs = performance.now() + SEEDS_MS;
  for (let seed = 0; seed < SEEDS && performance.now() < endMs; seed++) {
    assertEquals((await run(swarmPlan(seed))).violations, [], `seed ${seed}`);
  }
});

const FAIR_SEEDS = {
  385: "a PING notices a subscription that has died silently, so its client is notified",
  692: "others may go on until the request of a client that is far away arrives, also in a pool",
  693: "others may go on until the request of a client that is far away arrives",
};
const SHORT_PAUSE_SEED = 40_010_689;
Deno.test(`seed ${SHORT_PAUSE_SEED}: a process that stood still tries again soon after votes were split`, async () => {
  assertEquals((await run(swarmPlan(SHORT_PAUSE_SEED, { crowd: false }))).violations, []);
});

for (const [seed, what] of Object.entries(FAIR_SEEDS)) {
  Deno.test(`seed ${seed}: ${what}`, async () => {
    assertEquals((await run(swarmPlan(Number(seed), { crowd: false }))).violations, []);
  });
}

/** In the last three, clocks run apart, or processes stall when they look at a clock. */
const REPEATED_SEEDS = [6, 42, 75, 7_700_427, 7_700_433, 7_700_446];

Deno.test("seeds make the same traces in another order, line by line", async () => {
  const firsts = new Map<number, string>();
  for (const seed of REPEATED_SEEDS) {
    firsts.set(seed, (await run(swarmPlan(seed), true)).world.trace.text);
  }
  for (const [seed, first] of [...firsts].reverse()) {
    assert(first.length > 1_000);
    assertEquals((await run(swarmPlan(seed), true)).world.trace.text, first, `seed ${seed}`);
  }
});

Deno.test("a run that nobody traces is the run that is traced", async () => {
  for (const seed of REPEATED_SEEDS) {
    const traced = await run(swarmPlan(seed), true);
    const untraced = await run(swarmPlan(seed));
    for (const what of ["simulatedMs", "events", "locks", "violations"] as const) {
      assertEquals(untraced[what], traced[what], `${what} of seed ${seed}`);
    }
  }
});

const mayRun = (await Deno.permissions.query({ name: "run" })).state === "granted";
const node = mayRun ? await findRuntime("node").catch(() => undefined) : undefined;

Deno.test({
  name: node
    ? "a seed makes the same trace in Node"
    : `a seed makes the same trace in Node (${
      mayRun ? "no version that runs TypeScript was found" : "no permission to run programs"
    })`,
  ignore: node === undefined,
  fn: async () => {
    const program = `
      import { run } from "./tests/simulation/support/run.ts";
      import { swarmPlan } from "./tests/simulation/support/swarm.ts";
      process.stdout.write((await run(swarmPlan(42), true)).world.trace.text);
    `;
    const { success, stdout, stderr } = await plainCommand(node!, {
      args: ["--input-type=module-typescript", "--no-warnings", "--eval", program],
      stdin: "null",
    }).output();
    assert(success, new TextDecoder().decode(stderr));
    const here = (await run(swarmPlan(42), true)).world.trace.text;
    assertEquals(new TextDecoder().decode(stdout), here);
  },
});

Deno.test("shrink() leaves of a failing plan what the failure needs", async () => {
  // Where no node is left in the end there is no progress, and no fault is needed for it.
  const drawn = swarmPlan(42, { kinds: ["hang", "cut", "pause"] });
  const clients = drawn.clients.slice(0, 1).map((client) => ({
    ...client,
    ops: client.ops.slice(0, 1),
  }));
  const plan = {
    ...drawn,
    clients,
    faults: drawn.faults.filter((fault) => !("client" in fault) || fault.client < clients.length),
    left: [],
  };
  const broken = { ...plan, left: plan.nodes.map((_, index) => index) };
  const shrunk = await shrink(broken);
  assert(shrunk !== undefined);
  assertEquals(shrunk.outcome.violations[0]?.checker, "progress");
  assertEquals(shrunk.plan.faults, []);
  assertEquals(await shrink(plan), undefined);
});

Deno.test("shrink() tries no plan whose options the library refuses", () => {
  const drawn = Array.from({ length: 200 }, (_, seed) => swarmPlan(seed));
  assertEquals(drawn.filter((plan) => !isSound(plan)), []);
  const guarded = drawn.find(({ clients }) => clients[0].restartGuardMs !== undefined)!;
  const [client] = guarded.clients;
  const ops = client.ops.map((op) => ({ ...op, ttlMs: client.restartGuardMs! + 1 }));
  assertEquals(isSound({ ...guarded, clients: [{ ...client, ops }] }), false);
  const kept = client.ops.map((op) => ({ ...op, atLeastMs: op.ttlMs + 1 }));
  assertEquals(isSound({ ...guarded, clients: [{ ...client, ops: kept }] }), false);
});
