import { assertEquals } from "@std/assert";
import type { Fault, Op, Plan } from "./support/plan.ts";
import { swarmPlan } from "./support/swarm.ts";

/** How many seeds are drawn, and in how many of them each kind must be. */
const SEEDS = 200;
const RUNS_MIN = 5;

const MINUTE_MS = 60_000;

/**
 * In which plans a kind of fault is. `client-rate` is in named scenarios alone: no promise holds
 * with it.
 */
const KINDS: Readonly<Record<string, (plan: Plan) => boolean>> = {
  ...Object.fromEntries(
    Object.keys(
      {
        slow: true,
        partition: true,
        cut: true,
        "half-open": true,
        replay: true,
        "lost-extension": true,
        unconnectable: true,
        crash: true,
        hang: true,
        flush: true,
        "flush-scripts": true,
        evict: true,
        errors: true,
        full: true,
        demote: true,
        foreign: true,
        "node-step": true,
        "node-rate": true,
        pause: true,
        suspend: true,
        "wall-step": true,
        die: true,
        stick: true,
        forge: true,
      } satisfies Record<Exclude<Fault["kind"], "client-rate">, true>,
    ).map((kind) => [
      `fault ${kind}`,
      ({ faults }: Plan) => faults.some((fault) => fault.kind === kind),
    ]),
  ),
  "an extension whose reply is lost and whose connection is reset": ({ faults }) =>
    faults.some((fault) => fault.kind === "lost-extension" && fault.reset),
  "an extension whose reply is lost while its connection stays": ({ faults }) =>
    faults.some((fault) => fault.kind === "lost-extension" && !fault.reset),
  "a refused SUBSCRIBE": ({ faults }) => refuses(faults, "SUBSCRIBE"),
  "a refused PUBLISH": ({ faults }) => refuses(faults, "PUBLISH"),
  "messages that are lost": ({ messages }) => (messages?.lostChance ?? 0) > 0,
  "messages that come twice": ({ messages }) => (messages?.twiceChance ?? 0) > 0,
  "messages that are late": ({ messages }) => (messages?.lateMs ?? 0) > 0,
  "a listener that closes the client": hasOp(({ listener }) => listener?.does === "close"),
  "a listener that releases the lock": hasOp(({ listener }) => listener?.does === "release"),
  "a listener of the signal": hasOp(({ listener }) => listener?.on === "abort"),
  "a blocked event loop": hasOp(({ blockMs }) => (blockMs ?? 0) > 0),
  "a caller that asks its signal": hasOp(({ asksSignal }) => asksSignal === true),
  "a wall clock that is set back before a sleep": setsBackAround(-1_500, 0),
  "a wall clock that is set back after a sleep": setsBackAround(0, 1_500),
  "stalls between two statements": ({ process }) => process.stallChance > 0,
  "clocks of clients that are minutes apart": ({ clients }) => isApart(clients),
  "clocks of nodes that are minutes apart": ({ nodes }) => isApart(nodes),
  "fencing with a clock of a client that is years off": ({ clients }) =>
    clients.some(({ fencing, wallOffsetMs }) => fencing && isYears(wallOffsetMs)),
  "fencing with a clock of a node that is years off": ({ clients, nodes }) =>
    clients.some(({ fencing }) => fencing) && nodes.some((node) => isYears(node.wallOffsetMs)),
  "a restart guard": ({ clients }) => clients.some((client) => client.restartGuardMs),
  "a lock that is adopted right before all is mended": ({ clients, healAtMs }) =>
    hasOp(({ atMs, holdMs, handsTo }) =>
      handsTo !== undefined && Math.abs(atMs + holdMs + 300 - healAtMs) < 1
    )({ clients } as Plan),
  "a lock that keeps its keys for a while": hasOp(({ atLeastMs }) => (atLeastMs ?? 0) > 0),
  "calls that wait after all is mended": ({ clients, healAtMs }) =>
    hasOp(({ atMs, kind }) => atMs >= healAtMs && kind !== "close")({ clients } as Plan),
  "calls that wait between faults": ({ healAtMs }) => healAtMs > 20_000,
  "a cooldown": ({ clients }) => clients.some(({ cooldownMs }) => cooldownMs),
  "a client that polls": ({ clients }) => clients.some(({ notify }) => notify === false),
};

function refuses(faults: readonly Fault[], command: string): boolean {
  return faults.some((fault) => fault.kind === "errors" && fault.commands.includes(command));
}

function hasOp(is: (op: Op) => boolean): (plan: Plan) => boolean {
  return ({ clients }) => clients.some(({ ops }) => ops.some(is));
}

/**
 * A wall clock is set back in a span of time, in milliseconds before its machine's sleep or after
 * it.
 */
function setsBackAround(fromMs: number, toMs: number): (plan: Plan) => boolean {
  return ({ faults }) =>
    faults.some((sleep) =>
      sleep.kind === "suspend" && faults.some((step) => {
        if (
          step.kind !== "wall-step" || step.client !== sleep.client || step.stepMs > 0
        ) return false;
        const apartMs = step.atMs - sleep.atMs - (fromMs < 0 ? 0 : sleep.forMs);
        return apartMs >= fromMs && apartMs <= toMs;
      })
    );
}

function isApart(machines: readonly { readonly wallOffsetMs: number }[]): boolean {
  const offsets = machines.map(({ wallOffsetMs }) => wallOffsetMs);
  return Math.max(...offsets) - Math.min(...offsets) > MINUTE_MS;
}

function isYears(offsetMs: number): boolean {
  return Math.abs(offsetMs) > 365 * 24 * 60 * MINUTE_MS / 2;
}

Deno.test(`${SEEDS} seeds draw every kind of fault`, () => {
  const plans = Array.from({ length: SEEDS }, (_, seed) => swarmPlan(seed));
  const counts = Object.entries(KINDS).map(([kind, isIn]) =>
    [kind, plans.filter(isIn).length] as const
  );
  assertEquals(counts.filter(([, count]) => count < RUNS_MIN), []);
});

Deno.test("a swarm that is to choose from some kinds of faults draws no other", () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const { faults } = swarmPlan(seed, { kinds: ["cut", "hang"] });
    assertEquals(faults.filter(({ kind }) => kind !== "cut" && kind !== "hang"), []);
  }
});
