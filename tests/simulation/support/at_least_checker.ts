/** The checker of `atLeastMs`: which resources nobody else may have yet. */
import type { Held } from "./sim_client.ts";
import type { World } from "./world.ts";

/**
 * The drift of a client's clock, of a node's, and of what the client rounds, as multiples of the
 * drift factor.
 */
const DRIFTS = 3;
/** What whole milliseconds on both sides may take away. */
const ROUNDING_MS = 5;

/** The times, by true time, for which locks keep their resources at least. */
export class AtLeastChecker {
  readonly #world: World;
  readonly #kept = new Map<string, { readonly held: Held; readonly untilMs: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A caller has a lock from now on, if it is not over already: nobody else's is kept. */
  begin(held: Held): void {
    const { lock, token, claimMs, atLeastMs } = held;
    if (claimMs <= 0) return;
    const { atMs } = this.#world.values.get(lock.value)!;
    const keptMs = atLeastMs * (1 - DRIFTS * this.#world.plan.driftFactor) - ROUNDING_MS;
    for (const resource of lock.resources) {
      const before = this.#kept.get(resource);
      if (before && token === undefined && lock.held) {
        this.#check(held, before.held, before.untilMs);
      }
      if (keptMs > 0 && atMs + keptMs > (before?.untilMs ?? 0)) {
        this.#kept.set(resource, { held, untilMs: atMs + keptMs });
      }
    }
  }

  #check({ client, lock, sinceMs }: Held, before: Held, untilMs: number): void {
    if (sinceMs >= untilMs || lock.mode === "shared" && before.lock.mode === "shared") return;
    const { assumptions } = this.#world;
    const assumed = assumptions.nodesKeepTheirData && assumptions.nodeClocksKeepSpeed &&
      assumptions.clientsListTheSameNodes &&
      assumptions.clientClockKeepsSpeed(before.client.index);
    const text = `${client.name} has ${lock.resources.join("+")}, which ${before.client.name} ` +
      `keeps for another ${(untilMs - sinceMs).toFixed(1)} ms`;
    this.#world.failAssuming(assumed, "at-least", text);
  }
}
