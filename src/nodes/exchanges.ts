/**
 * Exchanges with a client of one's own: it is given commands, and what it returns or throws becomes
 * their answers.
 *
 * @module
 */
import { type CommandOutcome, ConnectionError } from "../redis/errors.ts";
import { printable } from "../printable.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import type { RawReply } from "../redis/reply.ts";
import { toError, withoutSecrets } from "../to_error.ts";
import type { CommandClient } from "./command_node_options.ts";
import { type Commands, readReply, replyErrorOf, secretsIn } from "./read_reply.ts";

/** How the error of an object ends that has no message. */
const FORM = /: \[object \w+\]$/u;

/** The reply to a command, which may be an error of the server; or why no reply came. */
export type CommandAnswer = RawReply | ConnectionError;

/** What became of the commands of one exchange. */
export interface Exchange {
  /** The answer to each command. */
  readonly answers: readonly CommandAnswer[];
  /** Only if they are no longer waited for: resolves if they still come. */
  readonly late: Promise<readonly CommandAnswer[]> | undefined;
}

/**
 * Sends commands: one by `send`, several by `pipeline`. Never rejects.
 *
 * @param client The client.
 * @param commands At least one.
 * @param wheel Where the time-out waits.
 * @param controller Aborts when they are no longer waited for: after the time-out, or by the
 * caller, whose reason is a `ConnectionError`.
 */
export async function exchange(
  client: CommandClient,
  commands: Commands,
  wheel: TimerWheel,
  controller: AbortController,
): Promise<Exchange> {
  const { timeoutMs, name } = client;
  const { signal } = controller;
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  const called = call(client, commands, signal);
  const timer = wheel.deadline(timeoutMs, () => {
    controller.abort(connectionError(name, `no reply within ${timeoutMs} ms`, "unknown"));
  });
  const answers = await Promise.race([called, aborted]);
  wheel.cancel(timer);
  if (answers) return { answers, late: undefined };
  return { answers: commands.map(() => signal.reason), late: called };
}

/**
 * Never rejects. From here on there is nothing of the client's, which may return and throw
 * anything.
 */
async function call(
  { send, pipeline, name }: CommandClient,
  commands: Commands,
  signal: AbortSignal,
): Promise<readonly CommandAnswer[]> {
  // A client may change what it is given, which other nodes have too.
  const given = commands.map((args) => [...args]);
  const single = commands.length === 1;
  try {
    const replies = single ? [await send(given[0], signal)] : await pipeline!(given, signal);
    if (!Array.isArray(replies) || replies.length !== commands.length) {
      throw new TypeError("'pipeline' must resolve to one reply for each command");
    }
    return commands.map((args, index) => {
      const reply = readReply(args, replies[index], commands);
      return reply === undefined ? noReply(name, commands, index, replies[index]) : reply;
    });
  } catch (thrown) {
    const error = single && replyErrorOf(thrown, commands) || clientError(name, commands, thrown);
    return commands.map(() => error);
  }
}

/** The error of a command that got no reply. */
export function connectionError(
  name: string,
  why: string,
  outcome: CommandOutcome,
  cause?: Error,
): ConnectionError {
  const message = `Cannot get reply from ${name}: ${why}`;
  return new ConnectionError(message, { address: name, outcome, cause });
}

/** The error of a command for which the client returned what is no reply. */
function noReply(
  name: string,
  commands: Commands,
  index: number,
  returned: unknown,
): ConnectionError {
  if (returned === undefined) {
    return connectionError(name, "the client returned undefined", "unknown");
  }
  const error = clientError(name, commands, returned);
  if (!FORM.test(error.message)) return error;
  const why = `the client returned no reply to ${commands[index][0]} in a known form`;
  return connectionError(name, why, "unknown");
}

/** The error of a command that the client failed to send; shows no argument. */
function clientError(name: string, commands: Commands, thrown: unknown): ConnectionError {
  const error = withoutSecrets(toError(thrown), secretsIn(commands));
  const cause = replyErrorOf(error) ?? error; // which knows whether it is permanent
  return connectionError(name, printable(error.message), "unknown", cause);
}
