/**
 * What a client of one's own is given to a node as, and one exchange with it.
 *
 * @module
 */
import { type CommandOutcome, ConnectionError } from "../redis/errors.ts";
import { printable } from "../printable.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import { messageOf } from "./read_reply.ts";

/** Sends one command. See {@linkcode CommandNodeOptions.send}. */
export type SendCommand = (args: string[], signal: AbortSignal) => Promise<unknown>;

/** Sends commands in one piece. See {@linkcode CommandNodeOptions.pipeline}. */
export type SendPipeline = (commands: string[][], signal: AbortSignal) => Promise<unknown[]>;

/** The client of one node. */
export interface ClientCalls {
  readonly name: string;
  readonly send: SendCommand;
  readonly pipeline: SendPipeline | undefined;
  readonly timeoutMs: number;
}

/** What became of the commands of one exchange. */
export interface Exchange {
  /** What the client returned for each command; `undefined` if it failed as a whole. */
  readonly replies: readonly unknown[] | undefined;
  /** When that was, by the monotonic clock in milliseconds. */
  readonly atMs: number;
  /** What it threw, or why it is no longer waited for. */
  readonly error: unknown;
  /** Whether it is no longer waited for. */
  readonly timedOut: boolean;
  /** Resolves if the replies still come; missing if they cannot. */
  readonly late: Promise<unknown> | undefined;
}

/** The exchanges with a client that are under way. */
export class Exchanges {
  readonly #client: ClientCalls;
  readonly #wheel: TimerWheel;
  /** What ends each one. */
  readonly #ends: Set<(error: Error) => void> = new Set();

  /**
   * @param client The client.
   * @param wheel Where time-outs wait.
   */
  constructor(client: ClientCalls, wheel: TimerWheel) {
    this.#client = client;
    this.#wheel = wheel;
  }

  /**
   * Sends commands: one by `send`, several by `pipeline`. Never rejects.
   *
   * @param commands At least one.
   */
  run(commands: string[][]): Promise<Exchange> {
    const { timeoutMs, name } = this.#client;
    const controller = new AbortController();
    return new Promise((resolve) => {
      const replies = this.#call(commands, controller.signal);
      let timer: TimerEntry | undefined = undefined;
      const settle = (exchange: Omit<Exchange, "atMs">) => {
        if (!this.#ends.delete(end)) return;
        if (timer) this.#wheel.cancel(timer);
        resolve({ ...exchange, atMs: this.#wheel.clock.monotonicMs() });
      };
      const end = (error: Error) => {
        settle({ replies: undefined, error, timedOut: true, late: replies });
        controller.abort(error);
      };
      this.#ends.add(end);
      timer = this.#wheel.deadline(timeoutMs, () => {
        end(connectionError(name, `no reply within ${timeoutMs} ms`, "unknown"));
      });
      const known = { timedOut: false, late: undefined };
      replies.then(
        (replies) => settle({ replies, error: undefined, ...known }),
        (error) => settle({ replies: undefined, error, ...known }),
      );
    });
  }

  /** Waits no longer for any exchange. */
  endAll(error: Error): void {
    for (const end of [...this.#ends]) end(error);
  }

  async #call(commands: string[][], signal: AbortSignal): Promise<readonly unknown[]> {
    const { send, pipeline, name } = this.#client;
    if (commands.length === 1) {
      return [await send(commands[0], signal)];
    }
    const replies = await pipeline!(commands, signal);
    if (Array.isArray(replies) && replies.length === commands.length) return replies;
    throw new TypeError(`'pipeline' of ${name} must resolve to one reply for each command`);
  }
}

/** The error of a command that got no reply. */
export function connectionError(
  name: string,
  why: string,
  outcome: CommandOutcome,
): ConnectionError {
  return new ConnectionError(`Cannot get reply from ${name}: ${why}`, { address: name, outcome });
}

/** The error of a command that the client failed to send; shows nothing of the command itself. */
export function clientError(
  name: string,
  args: readonly string[],
  error: unknown,
): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return connectionError(name, printable(messageOf(args, error)), "unknown");
}
