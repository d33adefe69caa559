/**
 * One run of one plan: safety under the plan's faults, then progress once they are mended, then
 * quiet.
 */
import process from "node:process";
import { planFaults } from "./faults.ts";
import { QUEUE_LEAD_MS } from "./library.ts";
import { type Op, PLAIN_OP, type Plan } from "./plan.ts";
import type { SimClient } from "./sim_client.ts";
import { runOp } from "./workload.ts";
import { type Violation, World } from "./world.ts";

/**
 * By when every op must be over after the faults, beyond what its own times add up to, in
 * milliseconds.
 */
const OPS_MS = 120_000;
/**
 * By when everybody must have had a turn once a quorum is well and old keys are gone, in
 * milliseconds, for each lock, beside the time in which a process stands still.
 */
const PROGRESS_MS = 120_000;
/** The TTL of the locks that are to show progress. */
const PROGRESS_TTL_MS = 5_000;
const PROGRESS_HOLD_MS = 20;
/** How many turns others may have while one waits, beyond two of each of them. */
const FAIR_TURNS = 5;
/**
 * For how many round trips others may go on while a far client has no place in the queue, or has
 * not used its turn.
 */
const FAR_ROUND_TRIPS = 4;
/** How often everybody wants everything when it is looked at whether all get their turns. */
const PROGRESS_TURNS = 4;
/** How long all may take to notice what is dead and connect again, in milliseconds, before that. */
const RECOVERY_MS = 15_000;
/**
 * By how much longer a node that was restarted is kept out than the guard says, in milliseconds.
 */
const UPTIME_ERROR_MS = 2_000;
/**
 * How long it takes at the most until everything that can be taken back has been, in milliseconds.
 */
const QUIET_MS = 12_000;
/** How often the nodes' keys are looked at for the picture, in milliseconds. */
const LOOK_MS = 5;
/**
 * How long a client that does not stall may go by what refused its last connection, and when a call
 * that failed so is repeated, in milliseconds.
 */
const REFUSED_MS = 5_000;
const RETRY_MS = 100;
/** By when everybody must have closed, however often their processes stall, in milliseconds. */
const CLOSING_MS = 60_000;
/** How long is waited after closing, in milliseconds. */
const CLOSED_MS = 3_000;

/** What came of a run. */
export interface Outcome {
  readonly plan: Plan;
  readonly violations: readonly Violation[];
  /** Violations to be expected, as an assumption does not hold. */
  readonly excused: readonly Violation[];
  readonly world: World;
  /** How long it took in simulated milliseconds. */
  readonly simulatedMs: number;
  readonly events: number;
  /** How many locks were held. */
  readonly locks: number;
}

/**
 * Does what the plan says.
 *
 * @param plan What happens.
 * @param traced Whether to note every line.
 */
export async function run(plan: Plan, traced = false): Promise<Outcome> {
  const world = new World(plan, traced);
  const { loop, checkers } = world;
  if (traced) watchKeys(world);
  const rejections = watchRejections(world);
  const { stackTraceLimit } = Error;
  // nobody reads the stacks of errors that are meant to happen
  if (!traced) Error.stackTraceLimit = 0;
  try {
    planFaults(world);
    const ops = new Ops(world);
    for (const client of world.clients) {
      for (const op of client.plan.ops) ops.begin(client, op, op.atMs);
    }
    world.adoptLater = (client, op, afterMs, token) => {
      const taker = world.clients[client]; // missing where a plan was shrunk
      if (taker) ops.begin(taker, op, loop.nowMs + afterMs, undefined, token);
    };
    await loop.run(plan.healAtMs, checkers.check);
    heal(world);
    checkers.healing.begin();
    // At the end there is a second look. By then keys with long TTLs have expired.
    loop.at(plan.healAtMs + 2 * QUIET_MS, () => checkers.checkOrphans(plan.healAtMs));
    await loop.run(loop.nowMs + OPS_MS + longestMs(plan), checkers.check, () => ops.over);
    if (!ops.over) reportStuck(world, "ops");
    await demandProgress(world, 1);
    if (clientsOf(world).length > 1) {
      await loop.run(loop.nowMs + RECOVERY_MS, checkers.check);
      world.turns.begin(fairTurnsMax(world));
      await demandProgress(world, PROGRESS_TURNS);
    }
    await loop.run(loop.nowMs + QUIET_MS, checkers.check);
    checkers.checkOrphans();
    checkers.healing.end();
    await closeAll(world);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    rejections.stop();
  }
  return {
    plan,
    violations: world.violations,
    excused: world.excused,
    world,
    simulatedMs: loop.nowMs,
    events: loop.count,
    locks: checkers.all.length,
  };
}

/** Calls of the library by their ops, and which of them are not over. */
class Ops {
  readonly #world: World;
  #running = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether none is left but those of the dead. */
  get over(): boolean {
    return this.#running === 0 ||
      this.#world.clients.every((client) => !client.process.alive || !this.#left.get(client));
  }

  readonly #left = new Map<SimClient, number>();

  /** Begins an op at a time. */
  begin(
    client: SimClient,
    op: Op,
    atMs: number,
    onEnd?: (done: boolean) => void,
    token?: string,
  ): void {
    this.#running++;
    this.#left.set(client, (this.#left.get(client) ?? 0) + 1);
    client.process.post(atMs, async () => {
      const done = await runOp(this.#world, client, op, token);
      this.#running--;
      this.#left.set(client, this.#left.get(client)! - 1);
      onEnd?.(done);
    });
  }
}

/** Ends what was not over yet, but for the nodes that stay down. */
function heal(world: World): void {
  const { plan, network, nodes } = world;
  world.trace.add("fault", "all faults are mended");
  for (const index of plan.left) {
    if (plan.leftHow === "hung") nodes[index].hang();
    else if (plan.leftHow === "crashed") network.crash(nodes[index], false);
    else {
      for (const { name } of world.clients) {
        network.link(name, index, "requests").block();
        network.link(name, index, "replies").block();
      }
    }
  }
}

/** Everybody wants everything a few times, and must have had it in bounded time, and in turn. */
async function demandProgress(world: World, times: number): Promise<void> {
  const { loop, checkers, plan, nodes } = world;
  const resources = [
    ...new Set(plan.clients.flatMap(({ ops }) => ops.flatMap((op) => op.resources))),
  ];
  const pools = plan.clients.flatMap(({ ops }) => ops.filter(({ any }) => any)).slice(0, 1);
  const shared = plan.clients.flatMap(({ ops }) => ops.filter((op) => op.shared)).slice(0, 1);
  const livesMs = nodes.flatMap((node) => node.liveKeys().map(({ remainingMs }) => remainingMs));
  const ops = new Ops(world);
  const wants = [
    ...resources.map((resource) => ({ resources: [resource], any: false })),
    ...pools.map(({ resources }) => ({ resources, any: true })),
    ...shared.map(({ resources }) => ({ resources, any: false, shared: true })),
  ];
  const forgottenMs = loop.nowMs + REFUSED_MS + 3 * plan.process.stallMaxMs;
  let failed = 0;
  for (const client of clientsOf(world)) {
    for (const want of wants) {
      const op: Op = {
        ...PLAIN_OP,
        atMs: loop.nowMs,
        ...want,
        ttlMs: Math.min(PROGRESS_TTL_MS, client.plan.restartGuardMs ?? Infinity),
        waitMs: Infinity,
        holdMs: PROGRESS_HOLD_MS,
      };
      const take = (turns: number, atMs = loop.nowMs) => {
        if (!want.any && !("shared" in want)) world.turns.ask(client.name, want.resources[0]);
        ops.begin(client, op, atMs, (done) => {
          if (!done && loop.nowMs < forgottenMs) return take(turns, loop.nowMs + RETRY_MS);
          failed += Number(!done);
          if (done && turns > 1) take(turns - 1);
        });
      };
      take(times);
    }
  }
  // Locks that were abandoned may be extended by themselves a few times more.
  const ttlsMs = plan.clients.flatMap((client) => client.ops.map(({ ttlMs }) => 3 * ttlMs));
  const { guardMs } = world.assumptions;
  const keptOutMs = guardMs > 0 ? 1.1 * guardMs + UPTIME_ERROR_MS : 0;
  const limitMs = loop.nowMs + wants.length * PROGRESS_MS + keptOutMs +
    1.1 * Math.max(...ttlsMs, ...livesMs);
  // Time does not count in which a process stood still.
  const stoodMs = () =>
    Math.max(0, ...clientsOf(world).map(({ process }) => loop.nowMs - process.awakeMs));
  const beforeMs = stoodMs();
  for (let leftMs = limitMs - loop.nowMs; !ops.over && leftMs > 0;) {
    await loop.run(loop.nowMs + leftMs, checkers.check, () => ops.over);
    leftMs = limitMs + stoodMs() - beforeMs - loop.nowMs;
  }
  if (!ops.over || failed > 0) {
    world.fail(
      "progress",
      `${failed} calls failed, ${world.calls.size} wait, though a quorum is well`,
    );
  }
}

/** The clients that still want something. */
function clientsOf(world: World): SimClient[] {
  return world.clients.filter(({ closed, process }) => !closed && process.alive);
}

/**
 * How many turns others may have while a client waits, if all wait to be notified. One that has not
 * asked for a while knows the nodes' clocks as well as the rates of all clocks agree: for so long
 * it may let others pass.
 */
function fairTurnsMax(world: World): (client: string) => number {
  if (!world.assumptions.waitersAreNotified) return () => Infinity;
  const { clients, nodes } = world.plan;
  const rates = [...clients.map((it) => it.monotonicRate), ...nodes.map(({ rate }) => rate)];
  const apartMs = (Math.max(...rates) - Math.min(...rates)) * RECOVERY_MS;
  const lateMs = Math.min(apartMs, QUEUE_LEAD_MS);
  const pooled = world.plan.clients.some(({ ops }) => ops.some(({ any }) => any));
  // one for a key, and one for a pool with it
  const callers = clientsOf(world).length * (pooled ? 2 : 1);
  return (name) => {
    const { distanceMs = 0 } = world.clients.find((client) => client.name === name)!.plan;
    const farMs = FAR_ROUND_TRIPS * 2 * distanceMs;
    return 2 * callers + FAIR_TURNS + Math.ceil((farMs + lateMs) / PROGRESS_HOLD_MS);
  };
}

async function closeAll(world: World): Promise<void> {
  const { loop, checkers } = world;
  const ops = new Ops(world);
  for (const client of world.clients) {
    if (!client.process.alive) continue;
    ops.begin(client, { ...PLAIN_OP, kind: "close", atMs: loop.nowMs }, loop.nowMs);
  }
  await loop.run(loop.nowMs + CLOSING_MS, checkers.check, () => ops.over);
  if (!ops.over) reportStuck(world, "close");
  await loop.run(loop.nowMs + CLOSED_MS, checkers.check);
  for (const { name, process } of world.clients) {
    if (process.alive && process.timers > 0) {
      world.fail("close", `${name} leaves ${process.timers} timers after close`);
    }
  }
  for (const node of world.nodes) {
    const open = node.up && !world.plan.left.includes(node.index)
      ? node.sessionsOf(world.clients)
      : 0;
    if (open > 0) world.fail("close", `${node.name} still has ${open} connections after close`);
  }
}

function reportStuck(world: World, what: string): void {
  const calls = [...world.calls].filter(({ client }) => client.process.alive)
    .map((call) => `${call.client.name} ${call.what}`);
  world.fail("settles", `${what} do not end: ${calls.join(", ") || "no call of the library"}`);
}

/** How long ops may take by their own times; who adopts a lock works as long as its giver did. */
function longestMs({ clients }: Plan): number {
  const times = clients.flatMap(({ ops }) =>
    ops.map(({ atMs, waitMs, holdMs, ttlMs, handsTo }) =>
      atMs + waitMs + (handsTo ? 4 : 2) * (holdMs + ttlMs)
    )
  );
  return Math.max(0, ...times.filter((timeMs) => timeMs < Infinity));
}

/** Looks at the nodes' keys every now and then, for the picture. */
function watchKeys({ loop, nodes, plan }: World): void {
  loop.watch(LOOK_MS, () => {
    if (loop.nowMs < 3 * plan.healAtMs) { for (const node of nodes) node.noteLives(); }
  });
}

/** Notes rejections that nobody handles: they would end a process. */
function watchRejections(world: World): { stop(): void } {
  const onRejection = (reason: unknown) => world.fail("unhandled-rejection", String(reason));
  process.on("unhandledRejection", onRejection);
  return { stop: () => void process.off("unhandledRejection", onRejection) };
}
