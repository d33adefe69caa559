/** The checker of fairness: how often others have had a lock while somebody waited for it. */

/** Counts, resource by resource, who had it while who waited. */
export class Turns {
  /** Who waits for which resource, and how often others have had it since. */
  readonly #waiting: Map<string, Map<string, number>> = new Map();
  /** The most turns that others have had. */
  most = 0;
  /** How many they may have while a client waits. */
  allowed: (client: string) => number = () => Infinity;

  /** Fairness is looked at from now on. */
  begin(allowed: (client: string) => number): void {
    this.#waiting.clear();
    this.most = 0;
    this.allowed = allowed;
  }

  /** Somebody wants a resource from now on. */
  ask(client: string, resource: string): void {
    const waiting = this.#waiting.get(resource) ?? new Map<string, number>();
    this.#waiting.set(resource, waiting.set(client, 0));
  }

  /** Somebody has it; says how often others had it since it asked. */
  take(client: string, resource: string): number {
    const waiting = this.#waiting.get(resource);
    const passed = waiting?.get(client) ?? 0;
    waiting?.delete(client);
    for (const [name, count] of waiting ?? []) waiting!.set(name, count + 1);
    this.most = Math.max(this.most, passed);
    return passed;
  }
}
