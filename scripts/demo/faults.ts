/**
 * What befalls the nodes while the workers are at it: never more than two of five are out at once.
 *
 * @module
 */

import type { DemoNode } from "./nodes.ts";
import type { Timeline } from "../../src/cli/demo/timeline.ts";

/** One thing done to one node. */
interface Fault {
  /** When: once this share of all increments is written. */
  readonly share: number;
  /** Which node, counted from 0. */
  readonly nodeIndex: number;
  readonly kind: "kill" | "hang" | "resume" | "restart";
}

const FAULTS: readonly Fault[] = [
  { share: 0.12, nodeIndex: 1, kind: "kill" },
  { share: 0.28, nodeIndex: 3, kind: "hang" },
  { share: 0.5, nodeIndex: 3, kind: "resume" },
  { share: 0.6, nodeIndex: 4, kind: "kill" },
  { share: 0.78, nodeIndex: 1, kind: "restart" },
];

/** How often the counter's progress is looked at, in milliseconds. */
const LOOK_EVERY_MS = 10;

/** Lets all faults happen, one after the other, until `signal` aborts. */
export async function letFaultsHappen(
  nodes: readonly DemoNode[],
  timeline: Timeline,
  { increments, ttlMs }: { increments: number; ttlMs: number },
  signal: AbortSignal,
): Promise<void> {
  const killedAtMs: number[] = [];
  for (const { share, nodeIndex, kind } of FAULTS) {
    // A node that comes back empty stays out for a whole TTL, so that no lock it has forgotten is still held.
    const notBeforeMs = kind === "restart" ? killedAtMs[nodeIndex]! + ttlMs : 0;
    const due = () =>
      timeline.writes >= share * increments && timeline.inside().length > 0 &&
      Date.now() > notBeforeMs;
    while (!due()) {
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    if (kind === "kill") killedAtMs[nodeIndex] = Date.now();
    await befall(nodes[nodeIndex]!, `node ${nodeIndex + 1}`, kind, timeline, ttlMs);
  }
}

async function befall(
  node: DemoNode,
  name: string,
  kind: Fault["kind"],
  timeline: Timeline,
  ttlMs: number,
): Promise<void> {
  const meanwhile = `while ${timeline.inside()[0]} holds the lock`;
  switch (kind) {
    case "kill":
      await node.kill();
      timeline.change(name, "killed");
      return timeline.note(`${name} is killed ${meanwhile}`);
    case "hang":
      await node.pause();
      timeline.change(name, "hung");
      return timeline.note(`${name} hangs, its port open, ${meanwhile}`);
    case "resume":
      node.resume();
      timeline.change(name, "up");
      return timeline.note(`${name} goes on as if nothing had happened`);
    case "restart":
      await node.restart();
      timeline.change(name, "up");
      return timeline.note(`${name} is back, empty, more than a TTL (${ttlMs} ms) later`);
  }
}
