/** The checker of cooldowns: which resources a client may not have again yet. */
import type { Held } from "./sim_client.ts";

/** By how much numbers with a fraction may differ though they mean the same, in milliseconds. */
const ROUNDING_MS = 0.01;

/** The cooldowns that must have begun by now, by the clients' monotonic clocks. */
export class CooldownChecker {
  /** By client and resource. */
  readonly #untilMs: Map<string, number> = new Map();

  /** Locks whose cooldowns have begun. */
  readonly #begun: WeakSet<Held> = new WeakSet();

  /**
   * A lock has ended, `endMs` at the earliest, and no release of it was confirmed. It ends once,
   * however often that is seen.
   */
  begin(held: Held, endMs = held.client.process.uptimeMs): void {
    if (this.#begun.has(held)) return;
    this.#begun.add(held);
    const untilMs = endMs + (held.client.plan.cooldownMs ?? 0);
    for (const name of namesOf(held)) {
      this.#untilMs.set(name, Math.max(untilMs, this.#untilMs.get(name) ?? 0));
    }
  }

  /** How much of its cooldown was left when a client got a lock, in milliseconds. */
  leftMs(held: Held): number {
    const leftMs = namesOf(held).map((name) =>
      (this.#untilMs.get(name) ?? 0) - held.client.process.uptimeMs
    );
    return Math.max(0, ...leftMs.filter((eachMs) => eachMs > ROUNDING_MS));
  }
}

function namesOf({ client, lock }: Held): string[] {
  return lock.resources.map((resource) => `${client.name} ${resource}`);
}
