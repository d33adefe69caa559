/** A run as data: who there is, what they do, and what goes wrong when. One plan makes one run. */
import type { Direction, NetworkManners } from "./network.ts";
import type { ProcessManners } from "./sim_process.ts";

/** One lock that a client takes, and what it does with it. */
export interface Op {
  /** When it begins, in milliseconds of true time. */
  readonly atMs: number;
  readonly kind: "acquire" | "tryAcquire" | "using" | "inspect" | "close";
  readonly resources: readonly string[];
  /** Whether it takes any one of them. */
  readonly any?: boolean;
  /** Whether it takes them in shared mode. */
  readonly shared?: boolean;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** For how long it works while it holds the lock. */
  readonly holdMs: number;
  /** How often it extends by itself. */
  readonly extendEveryMs?: number;
  /** The TTL of these extensions, where it is another. */
  readonly extendTtlMs?: number;
  readonly autoExtend?: boolean;
  /** For how long its keys live at least, however it ends; left out: 0. */
  readonly atLeastMs?: number;
  readonly extensionsMax?: number;
  /** When its own signal aborts the call, from its beginning. */
  readonly abortAfterMs?: number;
  /** What it does in the end; `twice` releases concurrently, `abandon` lets the lock run out. */
  readonly end: "release" | "twice" | "abandon";
  /**
   * Hands the lock over in place of that: these clients adopt it so long after; nobody if the token
   * is lost.
   */
  readonly handsTo?: readonly { readonly client: number; readonly afterMs: number }[];
  /** Whether it begins an extension just before. */
  readonly extendsMeanwhile?: boolean;
  /** What a listener does when the lock's signal aborts, or when an event of the call says so. */
  readonly listener?: {
    readonly on: "abort" | "attempt" | "acquired" | "extended" | "extend-failed" | "lost";
    readonly does: "close" | "release";
  };
  /**
   * For how long it computes without a break each time before it looks at the lock: its event loop
   * is blocked.
   */
  readonly blockMs?: number;
  /** Whether it asks the signal each time whether it has aborted; else it only listens. */
  readonly asksSignal?: boolean;
  /** Whether it never looks at `lock.signal`, so that none is made. */
  readonly ignoresSignal?: boolean;
}

/** One client: a process with a lock client in it. */
export interface ClientPlan {
  /** The nodes of its list, counted from 0; left out: all. */
  readonly nodes?: readonly number[];
  readonly monotonicRate: number;
  readonly wallRate: number;
  /** How far its wall clock is off. */
  readonly wallOffsetMs: number;
  readonly nodeTimeoutMs?: number;
  /**
   * How much longer than others' its way to each node is, and back, in milliseconds; left out: 0.
   */
  readonly distanceMs?: number;
  readonly connectTimeoutMs: number;
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  /** Whether it waits for notifications; left out: it does. */
  readonly notify?: boolean;
  /** Whether its locks have fencing tokens; left out: they don't. */
  readonly fencing?: boolean;
  /**
   * For how long a node that may have forgotten does not count, in milliseconds; left out: it
   * always does.
   */
  readonly restartGuardMs?: number;
  /**
   * For how long it does not take a resource again after a lock on it ended without a release; left
   * out: 0.
   */
  readonly cooldownMs?: number;
  readonly ops: readonly Op[];
}

/** One node. */
export interface NodePlan {
  readonly rate: number;
  readonly wallOffsetMs: number;
}

/** Something that goes wrong at a time; what lasts is over after `forMs`. */
export type Fault =
  & { readonly atMs: number }
  & (
    | {
      kind: "slow";
      client: number;
      node: number;
      direction: Direction;
      extraMs: number;
      forMs: number;
    }
    | {
      kind: "partition";
      clients: readonly number[];
      nodes: readonly number[];
      directions: readonly Direction[];
      forMs: number;
    }
    | { kind: "cut"; client: number; node: number; requests: "lost" | "delivered" }
    | { kind: "half-open"; client: number; node: number; directions: readonly Direction[] }
    | { kind: "replay"; client: number; node: number }
    | { kind: "lost-extension"; client: number; node: number; reset: boolean; forMs: number }
    | { kind: "unconnectable"; node: number; mood: "refused" | "blackholed"; forMs: number }
    | { kind: "crash"; node: number; data: "all" | "none" | number; silent: boolean; forMs: number }
    | { kind: "hang"; node: number; forMs: number }
    | { kind: "flush" | "flush-scripts" | "evict"; node: number }
    | { kind: "full"; node: number; forMs: number }
    | { kind: "demote"; node: number; forMs: number }
    | { kind: "errors"; node: number; text: string; commands: readonly string[]; forMs: number }
    | {
      kind: "foreign";
      nodes: readonly number[];
      resource: string;
      ttlMs: number;
      isSet?: boolean;
    }
    | { kind: "node-step"; node: number; stepMs: number }
    | { kind: "node-rate"; node: number; rate: number; forMs: number }
    | { kind: "pause" | "suspend"; client: number; forMs: number }
    | { kind: "wall-step"; client: number; stepMs: number }
    | { kind: "client-rate"; client: number; rate: number; forMs: number }
    | { kind: "die"; client: number; silent: boolean }
    | { kind: "stick"; node: number; resource: string; forMs: number }
    | { kind: "forge"; node: number }
  );

/** What becomes of messages that nodes publish, beside what the network does to them. */
export interface MessageManners {
  /** How likely one is lost. */
  readonly lostChance: number;
  /** How likely one comes twice. */
  readonly twiceChance: number;
  /** How late they are at the most, in milliseconds. */
  readonly lateMs: number;
}

/** A whole run. */
export interface Plan {
  readonly seed: string | number;
  readonly nodes: readonly NodePlan[];
  readonly clients: readonly ClientPlan[];
  readonly faults: readonly Fault[];
  /** The clients' option. Half of it is by how much an honest clock may be fast or slow. */
  readonly driftFactor: number;
  /**
   * How clients log in; left out: not at all. With `password` nodes ask for one, with `database`
   * locks are in another database than the first, too, and with `open` the clients' user needs no
   * password, so a login that is refused keeps nobody out.
   */
  readonly login?: "password" | "database" | "open";
  /**
   * For how long a client puts off a release and an extension, in milliseconds, so that it sends
   * those of several locks in one tick; left out: it does not.
   */
  readonly gatherMs?: number;
  /**
   * How many rounds of one kind a client has under way at a time; left out: as many as the library
   * lets it.
   */
  readonly roundsMax?: number;
  readonly network: NetworkManners;
  readonly process: ProcessManners;
  /** Until everything is mended; left out: they all come, once. */
  readonly messages?: MessageManners;
  /** When everything is mended but the nodes in `left`, and progress is demanded. */
  readonly healAtMs: number;
  /** Nodes that stay down, fewer than would break the quorum. */
  readonly left: readonly number[];
  /** How they are down. */
  readonly leftHow: "crashed" | "hung" | "unreachable";
}

/** A client that does nothing unusual. */
export const STEADY_CLIENT: Omit<ClientPlan, "ops"> = {
  monotonicRate: 1,
  wallRate: 1,
  wallOffsetMs: 0,
  connectTimeoutMs: 1_000,
  retryDelayMs: 100,
  retryDelayMaxMs: 2_000,
};

/** A process without hiccups. */
export const STEADY_PROCESS: ProcessManners = {
  timerLateMs: 0,
  timerEarlyMs: 0,
  stallChance: 0,
  stallMaxMs: 0,
  timersFirst: false,
};

/** A network without hiccups. */
export const STEADY_NETWORK: NetworkManners = {
  delayMs: 0.5,
  jitterMs: 0,
  splitChance: 0,
  partialWriteChance: 0,
  slowWriteChance: 0,
};

/** An op as most are. */
export const PLAIN_OP: Omit<Op, "atMs"> = {
  kind: "acquire",
  resources: ["a"],
  ttlMs: 10_000,
  waitMs: 10_000,
  holdMs: 1_000,
  end: "release",
};

/** The nodes that a client lists. */
export function listOf({ clients, nodes }: Plan, client: number): readonly number[] {
  return clients[client].nodes ?? [...nodes.keys()];
}
