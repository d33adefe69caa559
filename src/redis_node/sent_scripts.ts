/**
 * Which scripts the server knows, as far as one connection has sent them.
 *
 * A script goes out whole (`EVAL`) the first time on a connection and by its digest (`EVALSHA`) from then on. So a
 * server that does not know it needs no second round trip, in which the client's next command could overtake it.
 *
 * @module
 */
import type { Call } from "./commands.ts";
import type { Script } from "./scripts/script.ts";

/** See the module. */
export class SentScripts {
  /** The scripts that were sent whole, and whether that was answered. */
  readonly #answered: Map<Script, boolean> = new Map();

  /** Forgets everything: a new connection begins with no script sent. */
  clear(): void {
    this.#answered.clear();
  }

  /** How the script is to be called now. */
  nextCall(script: Script): Call {
    if (this.#answered.has(script)) return "EVALSHA";
    this.#answered.set(script, false);
    return "EVAL";
  }

  /** The whole script was answered: from here on the server knows it. */
  onAnswered(script: Script): void {
    this.#answered.set(script, true);
  }

  /**
   * A call by digest was answered with `NOSCRIPT`. It does not say that the script must be sent again if the whole
   * script went out behind that call: many calls in flight cause one whole script, not one each.
   *
   * @param again Whether the same request had that answer before.
   */
  onUnknown(script: Script, again: boolean): void {
    if (again || this.#answered.get(script)) this.#answered.delete(script);
  }
}
