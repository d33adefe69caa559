/** A run as a picture: who held what when, what went wrong meanwhile, and who had a key where. */
import {
  type Bar,
  counted,
  drawPicture,
  hueOf,
  type Mark,
  type Row,
} from "../../../src/cli/timeline/drawing.ts";
import { describeFault } from "./faults.ts";
import type { Fault } from "./plan.ts";
import type { Outcome } from "./run.ts";

const LEGEND = [
  ["hold", "a lock in hand (a colour a client)"],
  ["key", "its key on a node"],
  ["outage", "stopped, down or dead"],
  ["fault", "another fault"],
  ["violation", "a violation"],
] as const;

/** Makes the page. */
export function timelineHtml(outcome: Outcome, title: string): string {
  const { world, plan } = outcome;
  const endMs = Math.ceil(lastMs(outcome));
  const rows = rowsOf(outcome);
  const marks: Mark[] = [
    ...world.violations.map((violation) => ({ ...violation, kind: "violation" as const })),
    ...world.excused.map((violation) => ({ ...violation, kind: "expected" as const })),
    ...world.store.late.map(({ atMs, what }) => ({
      atMs,
      checker: what,
      what: "",
      kind: "expected" as const,
    })),
    { atMs: plan.healAtMs, checker: "all faults are mended", what: "", kind: "mended" },
  ];
  const verdict = world.violations.length > 0
    ? counted(world.violations.length, "violation")
    : world.excused.length > 0
    ? `${counted(world.excused.length, "violation")}, as expected outside the assumptions`
    : "no violation";
  const summary =
    `${counted(plan.nodes.length, "node")}, ${counted(plan.clients.length, "client")}, ` +
    `${counted(plan.faults.length, "fault")}, ${counted(outcome.locks, "lock")}: ${verdict}`;
  const { lines } = world.trace;
  const times = { startMs: 0, endMs, isClock: false };
  return drawPicture({ title, summary, ...times, rows, marks, lines, legend: LEGEND });
}

/** What happened to each client and each node. */
export function rowsOf(outcome: Outcome): Row[] {
  const { plan } = outcome;
  return [
    ...plan.clients.map((_, client): Row => ({
      name: `client-${client + 1}`,
      group: 0,
      bars: [...holdBars(outcome, client), ...faultBars(plan.faults, { client })],
    })),
    ...plan.nodes.map((_, node): Row => ({
      name: `node-${node + 1}`,
      group: 1,
      bars: [...keyBars(outcome, node), ...faultBars(plan.faults, { node })],
    })),
  ];
}

/** Where the picture ends: the faults, and a little of what came after. */
function lastMs({ world, plan }: Outcome): number {
  const ends = world.checkers.all.filter(({ sinceMs }) => sinceMs < plan.healAtMs)
    .flatMap(({ spans }) => spans.map(([, toMs]) => toMs))
    .filter((toMs) => toMs < Infinity);
  const faultMs = plan.faults.map((fault) => fault.atMs + ("forMs" in fault ? fault.forMs : 0));
  return 1.03 * Math.min(Math.max(1_000, ...ends, ...faultMs), 3 * plan.healAtMs);
}

function holdBars({ world }: Outcome, client: number): Bar[] {
  return world.checkers.all.filter((held) => held.client.index === client).flatMap((held) =>
    held.spans.map(([fromMs, toMs]): Bar => ({
      fromMs,
      toMs: toMs === Infinity ? world.loop.nowMs : toMs,
      text: `${held.lock.resources.join("+")} held (${held.lock.value.slice(0, 8)})`,
      kind: "hold",
      hue: hueOf(client),
    }))
  );
}

function keyBars({ world }: Outcome, node: number): Bar[] {
  return world.nodes[node].lives.map(({ key, value, fromMs, toMs }): Bar => {
    const client = world.values.get(value)?.client.index;
    return {
      fromMs,
      toMs,
      text: `${key} = ${value.slice(0, 8)}`,
      kind: "key",
      hue: client === undefined ? undefined : hueOf(client),
    };
  });
}

function faultBars(faults: readonly Fault[], where: { client?: number; node?: number }): Bar[] {
  const bars: Bar[] = [];
  for (const fault of faults) {
    const touchesClient = "client" in fault && fault.client === where.client ||
      "clients" in fault && where.client !== undefined && fault.clients.includes(where.client);
    const touchesNode = "node" in fault && fault.node === where.node ||
      "nodes" in fault && where.node !== undefined && fault.nodes.includes(where.node);
    if (!touchesClient && !touchesNode) continue;
    const toMs = fault.atMs + ("forMs" in fault ? fault.forMs : 0);
    const kind = ["pause", "suspend", "crash", "hang", "die"].includes(fault.kind)
      ? "outage"
      : "fault";
    bars.push({ fromMs: fault.atMs, toMs, text: describeFault(fault), kind });
  }
  return bars;
}
