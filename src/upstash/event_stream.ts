/**
 * A subscription over HTTP, by server-sent events.
 *
 * @module
 */
import type { SubscribeChannel } from "../nodes/mod.ts";
import { readJson, request } from "./read_json.ts";

/** Most characters of an event. A notification has fewer than a thousand. */
const EVENT_LENGTH_MAX = 65_536;
/** The end of a line; a carriage return at the end of what has come may be half of one. */
const LINE_END = /\r\n|\n|\r(?!$)/u;

/** Makes an error of what a database says, without the token. */
export type ErrorOf = (error: unknown) => Error;

/**
 * Makes the function that subscribes to a channel: `GET /subscribe/<channel>`. The events of the
 * response are `subscribe,<channel>,1` and `message,<channel>,<message>`; the subscription is lost
 * when the response ends. The node's signal ends it, also if it is not confirmed in time.
 */
export function subscribeOver(
  url: URL,
  headers: Record<string, string>,
  errorOf: ErrorOf,
): SubscribeChannel {
  return async (channel, listener, signal) => {
    const message = `message,${channel},`;
    const body = await openStream(new URL(`subscribe/${encodeURIComponent(channel)}`, url), {
      headers: { ...headers, accept: "text/event-stream" },
      signal,
    }, errorOf);
    await new Promise<void>((resolve, reject) => {
      const read = readEvents(body, signal, (event) => {
        if (event.startsWith(`subscribe,${channel},`)) resolve();
        if (event.startsWith(message)) listener.onMessage(event.slice(message.length));
      });
      read.then(() => reject(new Error("The stream of events ended")), reject).then(() => {
        if (!signal.aborted) listener.onLost();
      });
    });
    return () => {}; // the node has aborted the signal by then
  };
}

/** The body of the response; rejects with the database's error, or with the status. */
async function openStream(
  url: URL,
  init: RequestInit,
  errorOf: ErrorOf,
): Promise<ReadableStream<Uint8Array>> {
  const response = await request(url, init);
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (response.ok && isStream && response.body) return response.body;
  const { error = "no stream of events" } = await readJson(response) as { error?: unknown };
  throw errorOf(error);
}

/**
 * Calls `onEvent` with the data of each event, until the stream ends, `signal` aborts, or an event
 * is too long.
 */
async function readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onEvent: (data: string) => void,
): Promise<void> {
  const reader = body.getReader();
  // Deno does not end a body by the signal of its `fetch` once the response has been collected as
  // garbage.
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}));
  const decoder = new TextDecoder();
  let unread = "";
  let event: string | undefined;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (unread + decoder.decode(value, { stream: true })).split(LINE_END);
    unread = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith("data:")) {
        const data = line.slice(line[5] === " " ? 6 : 5);
        event = event === undefined ? data : `${event}\n${data}`;
      } else if (line === "" && event !== undefined) {
        onEvent(event);
        event = undefined;
      }
    }
    if (unread.length + (event?.length ?? 0) > EVENT_LENGTH_MAX) return await reader.cancel();
  }
}
