/**
 * One run: all workers make their increments, with the lock or without, and it is painted as it happens.
 *
 * @module
 */

import {
  axisRow,
  label,
  nodeRow,
  type Scale,
  scaleFor,
  workerRow,
} from "../../src/cli/demo/chart.ts";
import type { Crew } from "./crew.ts";
import { letFaultsHappen } from "./faults.ts";
import type { DemoNode } from "./nodes.ts";
import type { Style } from "../../src/cli/terminal.ts";
import { Canvas, columns, paint } from "./screen.ts";
import { Timeline } from "../../src/cli/demo/timeline.ts";

/** How often the picture is painted anew, in milliseconds. */
const PAINT_EVERY_MS = 80;
/** How long a run is thought to be until it turns out longer, in milliseconds. */
const LENGTH_MS_EXPECTED = 7_000;
const WORKER_COLOURS: readonly Style[] = ["cyan", "magenta", "yellow", "blue"];

/** What is run. */
export interface Plan {
  readonly title: string;
  readonly locked: boolean;
  /** By each worker. */
  readonly increments: number;
  readonly ttlMs: number;
  /** The nodes that faults befall; none where there are no faults. */
  readonly nodes: readonly DemoNode[];
  /** The scale of a run before, to be compared with. */
  readonly scale?: Scale;
}

/** What came of it. */
export interface Outcome {
  readonly increments: number;
  /** The most workers that were between reading and writing at one time. */
  readonly insideAtOnce: number;
  readonly scale: Scale;
}

/** Runs a plan to its end, or until `signal` aborts. */
export async function run(crew: Crew, plan: Plan, signal: AbortSignal): Promise<Outcome> {
  const timeline = new Timeline();
  const increments = plan.increments * crew.names.length;
  using canvas = new Canvas();
  const ended = new AbortController();
  plan.nodes.forEach((_, nodeIndex) => timeline.change(`node ${nodeIndex + 1}`, "up"));
  const draw = (scale?: Scale) => picture(plan, crew, timeline, increments, scale);
  const painter = setInterval(() => canvas.paint(draw()), PAINT_EVERY_MS);
  const faults = plan.nodes.length === 0
    ? Promise.resolve()
    : letFaultsHappen(plan.nodes, timeline, { increments, ttlMs: plan.ttlMs }, ended.signal);
  try {
    const work = crew.perform(plan, timeline, signal).finally(() => ended.abort());
    await Promise.all([work, faults]);
  } finally {
    clearInterval(painter);
    ended.abort();
    await Promise.allSettled([faults]); // a node that is being restarted is not to be left behind
  }
  timeline.end();
  const scale = plan.scale ?? scaleFor(timeline.lengthMs, columns());
  canvas.finish(draw(scale));
  return { increments, insideAtOnce: timeline.insideAtOnce(), scale };
}

function picture(
  plan: Plan,
  crew: Crew,
  timeline: Timeline,
  increments: number,
  finalScale: Scale | undefined,
): string[] {
  const scale = finalScale ?? plan.scale ??
    scaleFor(Math.max(LENGTH_MS_EXPECTED, timeline.lengthMs), columns());
  const inside = timeline.inside().join(", ") || (plan.locked ? "nobody" : "none");
  const status = finalScale
    ? ""
    : `${inside} ${plan.locked ? "holds it" : "inside"} · ${timeline.writes} of ${increments}`;
  const painted = crew.names.map((name, index) =>
    workerRow(timeline, name, WORKER_COLOURS[index % WORKER_COLOURS.length]!, scale, paint)
  );
  const nodes = plan.nodes.map((_, nodeIndex) =>
    nodeRow(timeline, `node ${nodeIndex + 1}`, scale, paint)
  );
  const notes = timeline.notes.map(({ atMs, text }) => {
    const time = `${(atMs / 1_000).toFixed(2)} s`;
    return paint("dim", label(time, time.length)) + text;
  });
  return [
    "",
    `  ${paint("bold", plan.title)}  ${paint("dim", status)}`.trimEnd(),
    ...painted,
    ...(nodes.length > 0 ? ["", ...nodes] : []),
    axisRow(scale, finalScale ? timeline.lengthMs : scale.columns * scale.msPerColumn, paint),
    ...notes,
  ];
}
