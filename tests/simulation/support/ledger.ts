/**
 * What the nodes did and, by it, promised: written by the nodes, read by the checkers.
 *
 * A node that sets a key promises to keep it for the TTL, by a clock that runs within the drift
 * allowance. What a node promised stays in the ledger when the node forgets it (data lost, clock
 * stepped), so that a checker can distinguish a lock client that claims too much from a node that
 * kept too little.
 */

/** One key on one node for one value. */
export interface Promised {
  /** Until when, in true time, the node was to keep the key at least. */
  untilMs: number;
  /**
   * How many SETs may still run: one for the acquisition, and one for each extension that found the
   * key missing.
   */
  setsLeft: number;
  /** When an extension last found it there. */
  extendedAtMs: number | undefined;
  /** Until when it is to live on after the end of its lock, from when that reached the node. */
  keptUntilMs: number;
}

/** What one node did with the keys of one value. */
export interface Deeds {
  /** By key. */
  readonly promised: Map<string, Promised>;
  /** Over which connections it was asked to release them. */
  readonly releasedOver: Set<number>;
  /** Whether a release was answered with an error, so that the keys are left to their TTL. */
  releaseRefused: boolean;
  /**
   * Whether a fault has put a SET behind the release: one of a connection that was overtaken, of
   * the disk, of a replay.
   */
  reordered: boolean;
  /** The client whose adoption failed and gave the value back behind a release of it. */
  givenBackBy: string | undefined;
  /** Somebody else's values that its extensions and acquisitions found. */
  readonly blockers: string[];
}

/** What all nodes did. */
export class Ledger {
  readonly #deeds = new Map<string, Map<number, Deeds>>();
  /** Called with what no node should ever be brought to do, as it happens. */
  readonly misdeed: (what: string) => void;
  /** Called with what a full node has refused to a holder. */
  readonly refused: (what: string) => void;

  /**
   * @param misdeed Called with what no node should ever be brought to do, as it happens.
   * @param refused Called with what a full node has refused to a holder.
   */
  constructor(misdeed: (what: string) => void, refused: (what: string) => void) {
    this.misdeed = misdeed;
    this.refused = refused;
  }

  /** What a node did for a value. */
  of(value: string, node: number): Deeds {
    let nodes = this.#deeds.get(value);
    if (!nodes) this.#deeds.set(value, nodes = new Map());
    let deeds = nodes.get(node);
    if (!deeds) {
      deeds = {
        promised: new Map(),
        releasedOver: new Set(),
        releaseRefused: false,
        reordered: false,
        givenBackBy: undefined,
        blockers: [],
      };
      nodes.set(node, deeds);
    }
    return deeds;
  }

  /** What a node promised about one key, or `undefined`. */
  promised(value: string, node: number, key: string): Promised | undefined {
    return this.#deeds.get(value)?.get(node)?.promised.get(key);
  }

  /** A key was set. */
  set(value: string, node: number, key: string, connection: number): Promised {
    const deeds = this.of(value, node);
    const before = deeds.promised.get(key);
    if (before?.setsLeft === 0 && !deeds.reordered) {
      this.misdeed(`node-${node + 1} ran the SET of ${value} for "${key}" twice`);
    }
    if (deeds.releasedOver.has(connection)) {
      this.misdeed(
        `node-${node + 1} was sent the SET of ${value} after its release, on one connection`,
      );
    }
    if (deeds.releasedOver.size > 0) deeds.reordered = true;
    const setsLeft = Math.max(0, (before?.setsLeft ?? 1) - 1);
    const promised = { untilMs: 0, setsLeft, extendedAtMs: undefined, keptUntilMs: 0 };
    deeds.promised.set(key, promised);
    return promised;
  }

  /** An extension ran, and the key was there. */
  extended(value: string, node: number, key: string, atMs: number): Promised {
    const entry = this.#entry(value, node, key);
    entry.extendedAtMs = atMs;
    return entry;
  }

  /** An extension ran, and the key was missing: the client may set it once more. */
  missed(value: string, node: number, key: string): void {
    this.#entry(value, node, key).setsLeft++;
  }

  #entry(value: string, node: number, key: string): Promised {
    const { promised } = this.of(value, node);
    const entry = promised.get(key) ??
      { untilMs: 0, setsLeft: 1, extendedAtMs: undefined, keptUntilMs: 0 };
    promised.set(key, entry);
    return entry;
  }

  /** An adoption gave a key of this value another one. */
  replaced(value: string, node: number, key: string): void {
    this.#entry(value, node, key).untilMs = 0;
  }

  /** A release ran, whether or not there was anything to release. */
  released(value: string, node: number, keys: readonly string[], connection: number): void {
    const deeds = this.of(value, node);
    for (const key of keys) {
      const entry = deeds.promised.get(key);
      if (entry) entry.untilMs = 0;
    }
    deeds.releasedOver.add(connection);
  }

  /**
   * How many nodes promised to keep all keys until then.
   *
   * @param value Whose.
   * @param keys Which.
   * @param nodeCount How many nodes there are.
   * @param untilMs The true time up to which they must.
   */
  keepingUntil(
    value: string,
    keys: readonly string[],
    nodeCount: number,
    untilMs: number,
  ): number {
    let keeping = 0;
    const nodes = this.#deeds.get(value);
    if (!nodes) return 0;
    for (let node = 0; node < nodeCount; node++) {
      const promised = nodes.get(node)?.promised;
      if (promised && keys.every((key) => (promised.get(key)?.untilMs ?? 0) >= untilMs)) keeping++;
    }
    return keeping;
  }

  /** On how many nodes an extension found all keys, in a span of time. */
  extendedWithin(
    value: string,
    keys: readonly string[],
    nodeCount: number,
    fromMs: number,
  ): number {
    let found = 0;
    const nodes = this.#deeds.get(value);
    for (let node = 0; node < nodeCount; node++) {
      const promised = nodes?.get(node)?.promised;
      if (promised && keys.every((key) => (promised.get(key)?.extendedAtMs ?? -1) >= fromMs)) {
        found++;
      }
    }
    return found;
  }
}
