/**
 * Who wants what in this process: calls for the same resources stand in line, first in, first out. Only the first
 * asks the nodes; and while this client holds the lock nobody does.
 *
 * @module
 */
import { Bell } from "./release_notifications.ts";
import { Contender } from "./queued_waiter.ts";
import type { EventListener } from "../events.ts";
import type { Settings } from "../options.ts";
import type { Round, Voters } from "../quorum/round.ts";
import { Pause, PollingWaiter, type Waiter } from "./waiter.ts";

/** Stands between the keys of one lock in its name: nothing that is well formed has it. */
const SEPARATOR = "\udc00";

/** Who asks for a lock, or has it: known by its identity alone. */
type Occupant = object;

/** One call that waits for those before it. */
interface Turn {
  readonly caller: Occupant;
  pause: Pause | undefined;
}

/** The calls for one lock, where there is more than one or one has to wait. */
class Line {
  occupant: Occupant;
  /** Who waits behind, first come first. */
  readonly turns: Set<Turn> = new Set();
  /** How this client waits among others. */
  contender: Contender | undefined = undefined;
  /** Whether others stood in line when this client last released the lock. */
  othersWait = false;
  /** The last attempt that failed, for those who never come to ask. */
  latest: Round | undefined = undefined;

  constructor(occupant: Occupant) {
    this.occupant = occupant;
  }
}

/** What all calls for the same keys have in common, in whatever order they name them. */
export function lineName(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** All lines of one client. A lock that nobody else wants takes one entry of a map. */
export class Lines {
  readonly #occupied: Map<string, Occupant | Line> = new Map();
  readonly #voters: Voters;
  readonly #onEvent: EventListener | undefined;
  readonly #canListen: boolean;
  #bell: Bell | undefined = undefined;

  /**
   * @param voters Who is asked.
   * @param onEvent Told of nodes that refuse to tell of releases.
   */
  constructor(voters: Voters, onEvent: EventListener | undefined) {
    this.#voters = voters;
    this.#onEvent = onEvent;
    this.#canListen = voters.nodes.some(({ listen }) => listen !== undefined);
  }

  /** Makes `caller` the first, if there is none; says whether it is. */
  enter(name: string, caller: Occupant): boolean {
    if (this.#occupied.has(name)) return false;
    this.#occupied.set(name, caller);
    return true;
  }

  /**
   * Waits behind all who came before.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Gives up.
   * @returns Whether `caller` is first now; else it is no longer in line.
   */
  async wait(
    name: string,
    caller: Occupant,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const line = this.#line(name);
    const turn = { caller, pause: new Pause(this.#voters.wheel, limitMs, signal) };
    line.turns.add(turn);
    await turn.pause.over;
    return !line.turns.delete(turn);
  }

  /** The last attempt of whoever stood first in that line, and how many clients waited then. */
  latest(name: string): Round | undefined {
    const found = this.#occupied.get(name);
    return found instanceof Line ? found.latest : undefined;
  }

  /** How many clients stand in line for the lock, as far as it is known. */
  length(name: string): number | undefined {
    const found = this.#occupied.get(name);
    return found instanceof Line ? found.contender?.lineLength : undefined;
  }

  /** The first has the lock now. */
  succeed(name: string, caller: Occupant, hold: Occupant): void {
    const found = this.#occupied.get(name);
    if (found === caller) this.#occupied.set(name, hold);
    else if (found instanceof Line) {
      found.occupant = hold;
      found.latest = undefined;
      found.contender?.rest();
    }
  }

  /**
   * Whoever was first, or had the lock, is done. The next is first.
   *
   * @param othersWait Whether other clients stand in line, who come before the next of this one.
   */
  vacate(name: string, occupant: Occupant, othersWait = false): void {
    const found = this.#occupied.get(name);
    if (found === occupant) this.#occupied.delete(name);
    if (!(found instanceof Line) || found.occupant !== occupant) return;
    found.othersWait = othersWait;
    const [next] = found.turns;
    if (next) {
      found.turns.delete(next);
      found.occupant = next.caller;
      found.contender?.resume();
      next.pause!.end();
    } else {
      this.#occupied.delete(name);
      found.contender?.end();
    }
  }

  /**
   * How the first waits where others were seen to want the same: it lines up behind them before it asks. Else
   * `undefined`, and it asks at once.
   */
  expected(name: string, keys: readonly string[], settings: Settings): Waiter | undefined {
    const bell = this.#bell;
    const found = this.#occupied.get(name);
    const othersWait = found instanceof Line && found.othersWait;
    if (!othersWait && !(bell?.heard && bell.expectsContention(name))) return undefined;
    return settings.notify ? this.waiter(name, keys, settings) : undefined;
  }

  /** How the first waits after it was denied. */
  waiter(name: string, keys: readonly string[], settings: Settings): Waiter {
    if (!settings.notify || !this.#canListen) {
      return new PollingWaiter(this.#voters.wheel, settings);
    }
    const line = this.#line(name);
    const bell = this.#bell ??= new Bell(this.#voters, this.#onEvent);
    bell.noteContended(name);
    line.contender ??= new Contender(bell, this.#voters, keys);
    line.contender.settings = settings;
    return line.contender;
  }

  /** The first was denied, for those who never come to ask. */
  note(name: string, denied: Round): void {
    const found = this.#occupied.get(name);
    if (found instanceof Line) found.latest = denied;
  }

  /** The first does not want the lock for now: what it stands in line for on the nodes is for others. */
  standAside(name: string): void {
    const found = this.#occupied.get(name);
    if (!(found instanceof Line)) return;
    found.contender?.end();
    found.contender = undefined;
  }

  /** The client closes: nobody is woken any more. */
  close(): void {
    this.#bell?.close();
  }

  /** The line of that name, which somebody stands in already. */
  #line(name: string): Line {
    const found = this.#occupied.get(name)!;
    if (found instanceof Line) return found;
    const line = new Line(found);
    this.#occupied.set(name, line);
    return line;
  }
}
