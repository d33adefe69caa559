/** Making things go wrong, and mending them. */
import { EXTEND } from "./library.ts";
import type { Fault } from "./plan.ts";
import type { World } from "./world.ts";

/** Plans every fault of the world's plan. */
export function planFaults(world: World): void {
  for (const fault of world.plan.faults) world.loop.at(fault.atMs, () => begin(world, fault));
}

function begin(world: World, fault: Fault): void {
  const { loop, trace } = world;
  const startMs = idleAtMs(world, fault);
  if (startMs > loop.nowMs) return void loop.at(startMs, () => begin(world, fault));
  trace.add("fault", describeFault(fault));
  const mend = cause(world, fault);
  if (!mend || !("forMs" in fault)) return;
  loop.at(Math.max(startMs, fault.atMs + fault.forMs), () => end(world, fault, mend));
}

function end(world: World, fault: Fault, mend: () => void): void {
  const endMs = idleAtMs(world, fault);
  if (endMs > world.loop.nowMs) return void world.loop.at(endMs, () => end(world, fault, mend));
  world.trace.add("fault", `over: ${describeFault(fault)}`);
  mend();
}

/** A turn that is held up has read its clocks already: what changes them waits for its end. */
function idleAtMs({ loop, processes }: World, fault: Fault): number {
  const changesClock = fault.kind === "suspend" || fault.kind === "wall-step" ||
    fault.kind === "client-rate";
  return changesClock ? Math.max(loop.nowMs, processes[fault.client].busyUntilMs) : loop.nowMs;
}

/** A fault as people would say it. */
export function describeFault(fault: Fault): string {
  const { atMs: _, kind, ...details } = fault;
  const words = Object.entries(details).map(([name, value]) => {
    if (name === "client" || name === "node") return `${name}-${Number(value) + 1}`;
    if (name === "clients" || name === "nodes") {
      const one = name.slice(0, -1);
      return (value as number[]).map((index) => `${one}-${index + 1}`).join("+");
    }
    return name === "forMs" ? `for ${value} ms` : `${name}=${[value].flat().join("+")}`;
  });
  return `${kind} ${words.join(" ")}`;
}

/** Does it; returns what ends it, for one that lasts. */
function cause(world: World, fault: Fault): (() => void) | void {
  switch (fault.kind) {
    case "slow":
    case "partition":
    case "cut":
    case "half-open":
    case "replay":
    case "lost-extension":
    case "unconnectable":
      return causeOnNetwork(world, fault);
    case "pause":
    case "suspend":
    case "wall-step":
    case "client-rate":
    case "die":
      return causeOnClient(world, fault);
    default:
      return causeOnNode(world, fault);
  }
}

/** Whether bytes on their way to a node hold the command that extends a lock. */
function isExtension(bytes: string): boolean {
  return bytes.includes(EXTEND.sha1) || bytes.includes(EXTEND.source);
}

type FaultOf<Kind extends Fault["kind"]> = Extract<Fault, { kind: Kind }>;

function causeOnNetwork(
  world: World,
  fault: FaultOf<
    "slow" | "partition" | "cut" | "half-open" | "replay" | "lost-extension" | "unconnectable"
  >,
): (() => void) | void {
  const { network, nodes } = world;
  const nameOf = (client: number) => world.clients[client].name;
  switch (fault.kind) {
    case "slow": {
      const link = network.link(nameOf(fault.client), fault.node, fault.direction);
      link.extraMs += fault.extraMs;
      return () => link.extraMs -= fault.extraMs;
    }
    case "partition": {
      const links = fault.clients.flatMap((client) =>
        fault.nodes.flatMap((node) =>
          fault.directions.map((direction) => network.link(nameOf(client), node, direction))
        )
      );
      for (const link of links) link.block();
      return () => links.forEach((link) => link.unblock());
    }
    case "cut":
      return network.cut(fault.node, nameOf(fault.client), fault.requests);
    case "half-open":
      return network.halfOpen(fault.node, nameOf(fault.client), fault.directions);
    case "replay":
      return network.replay(nodes[fault.node], nameOf(fault.client));
    case "lost-extension": {
      const link = network.link(nameOf(fault.client), fault.node, "requests");
      link.trap = { takes: isExtension, reset: fault.reset };
      return () => link.trap = undefined;
    }
    case "unconnectable":
      network.moods.set(fault.node, fault.mood);
      return () => network.moods.delete(fault.node);
  }
}

function causeOnNode(
  world: World,
  fault: FaultOf<
    | "crash"
    | "hang"
    | "flush"
    | "flush-scripts"
    | "evict"
    | "full"
    | "demote"
    | "errors"
    | "foreign"
    | "forge"
    | "node-step"
    | "node-rate"
    | "stick"
  >,
): (() => void) | void {
  if (fault.kind === "foreign") {
    const value = fault.isSet ? undefined : `another program ${fault.atMs}`;
    for (const node of fault.nodes) world.nodes[node].plant(fault.resource, value, fault.ttlMs);
    return;
  }
  const node = world.nodes[fault.node];
  switch (fault.kind) {
    case "crash": {
      if (!node.up) return;
      const crashedAtMs = world.loop.nowMs;
      world.network.crash(node, fault.silent);
      return () => {
        if (node.up) return;
        if (fault.data !== "all") world.assumptions.noteDataLost();
        node.restart(fault.data, crashedAtMs);
      };
    }
    case "hang":
      node.hang();
      return () => node.resume();
    case "flush":
      world.assumptions.noteDataLost();
      return node.flush();
    case "flush-scripts":
      return node.flushScripts();
    case "evict":
      world.assumptions.noteEvicted();
      return void node.evict();
    case "stick": {
      const process = world.processOf(node.queue(fault.resource)[0]);
      process?.stop();
      return () => process?.resume();
    }
    case "forge":
      return node.forge();
    case "full":
      node.fill(1);
      return () => node.fill(-1);
    case "demote":
      node.demote();
      return () => node.promote();
    case "errors":
      node.refusal = fault;
      return () => node.refusal = undefined;
    case "node-step":
      if (fault.stepMs > 0) world.assumptions.noteFastNode();
      else node.damaged = true; // readers whose time was over come back
      // removes the keys that have expired, as a server does by itself: they do not come back
      node.liveKeys();
      return node.clock.change({ wallStepMs: fault.stepMs }, world.loop.nowMs);
    case "node-rate": {
      const before = world.plan.nodes[fault.node].rate; // not that of a fault that is over by then
      if (fault.rate > 1 + world.plan.driftFactor / 2) world.assumptions.noteFastNode();
      node.clock.change({ wallRate: fault.rate }, world.loop.nowMs);
      return () => node.clock.change({ wallRate: before }, world.loop.nowMs);
    }
  }
}

function causeOnClient(
  world: World,
  fault: FaultOf<"pause" | "suspend" | "wall-step" | "client-rate" | "die">,
): (() => void) | void {
  const process = world.processes[fault.client];
  switch (fault.kind) {
    case "pause":
      process.stop();
      return () => process.resume();
    case "suspend":
      process.stop();
      process.changeClock({ suspended: true });
      world.assumptions.noteClock(fault.client, { suspended: true, hidSleep: process.hidSleep });
      return () => {
        process.changeClock({ suspended: false });
        process.resume();
      };
    case "wall-step":
      process.changeClock({ wallStepMs: fault.stepMs });
      if (fault.stepMs > 0) world.assumptions.noteClock(fault.client, { steppedAhead: true });
      else world.assumptions.noteClock(fault.client, { hidSleep: process.hidSleep });
      return;
    case "client-rate": {
      const { monotonicRate, wallRate } = world.plan.clients[fault.client];
      if (fault.rate < 1 - world.plan.driftFactor / 2) {
        world.assumptions.noteClock(fault.client, { tooSlow: true });
      }
      process.changeClock({ monotonicRate: fault.rate, wallRate: fault.rate });
      return () => process.changeClock({ monotonicRate, wallRate });
    }
    case "die":
      process.die();
      for (const node of world.nodes) {
        if (fault.silent) {
          world.network.halfOpen(node.index, process.name, ["requests", "replies"]);
        } else world.network.cut(node.index, process.name, "delivered");
      }
  }
}
