/**
 * Nodes on Redis over HTTP, by the REST protocol of Upstash: for runtimes without TCP. They need
 * nothing but `fetch`.
 *
 * @example A lock on one database
 * ```ts
 * import { assert } from "@std/assert";
 * import { Redlock } from "@hasp/redlock";
 * import { upstashNode } from "@hasp/redlock/upstash";
 *
 * const database = { url: "https://eu-1.example.com", token: "…" };
 * const handle = async (_request: Request) => {
 *   await using redlock = new Redlock([upstashNode(database)]);
 *   return await redlock.using("invoice:42", () => new Response("done"));
 * };
 * assert(typeof handle === "function"); // for Deno.serve(), a Worker or an edge function
 * ```
 *
 * @module
 */
import { commandNode, type LockNode } from "../nodes/mod.ts";
import { check, checkOptions, type Rule } from "../validate.ts";
import { type ErrorOf, subscribeOver } from "./event_stream.ts";
import { readJson, request } from "./read_json.ts";

const ACTION = "create node";
const OPTION_NAMES: readonly string[] = ["url", "token", "timeoutMs"];

const REST_URL: Rule = {
  text: "must be the database's REST URL, https://host[/path], without credentials and parameters",
  holds: (url: string | URL) => {
    if (!URL.canParse(String(url))) return false;
    const { protocol, username, password, search, hash } = new URL(url);
    return /^https?:$/u.test(protocol) && `${username}${password}${search}${hash}` === "";
  },
  isForm: true,
};
const TOKEN: Rule = {
  text: "must be a non-empty string of visible ASCII characters",
  // Some runtimes repeat what they refuse in a header.
  holds: (token: unknown) => typeof token === "string" && /^[\x21-\x7e]+$/u.test(token),
  isForm: true,
};

/** Options of {@linkcode upstashNode}. */
export interface UpstashNodeOptions {
  /**
   * The REST URL of the database: `https:`, or `http:` for a server of your own; perhaps with a
   * path, which is a part of the node's name. A redirect is an error.
   */
  readonly url: string | URL;
  /** The token of the database that allows to write. */
  readonly token: string;
  /**
   * How long the node waits for a response, in milliseconds: more than 0, and finite. Then the
   * command counts as lost, and the node undoes it.
   *
   * @default {2_000}
   */
  readonly timeoutMs?: number | undefined;
}

/** One element of a response. */
interface Result {
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * Makes a node of a database that speaks Redis over HTTP. Waiting calls are notified by server-sent
 * events.
 *
 * @param options Where the database is, and its token.
 * @returns The node, for `new Redlock(nodes)`; its name is the host of the URL, and the path if
 * there is one.
 * @throws {TypeError} If an option is missing, unknown or of the wrong type.
 * @throws {RangeError} If `timeoutMs` is out of range.
 */
export function upstashNode(options: UpstashNodeOptions): LockNode {
  const { url, token, timeoutMs } = checked(options);
  const headers = { authorization: `Bearer ${token}` };
  // What refuses the token may repeat it.
  const errorOf: ErrorOf = (error) => new Error(String(error).replaceAll(token, "***"));
  const readReply = (returned: unknown) => replyOf(returned, errorOf);
  const post = async (path: string, body: unknown, signal: AbortSignal): Promise<unknown> => {
    const init = { method: "POST", headers, body: JSON.stringify(body), signal };
    return readJson(await request(new URL(path, url), init));
  };
  return commandNode({
    name: `${url.host}${url.pathname.slice(0, -1)}`,
    timeoutMs,
    // A gateway or a browser may send a request again.
    resends: true,
    send: async (args, signal) => {
      const reply = readReply(await post("", args, signal));
      if (reply instanceof Error) throw reply;
      return reply;
    },
    pipeline: async (commands, signal) => {
      const replies = await post("pipeline", commands, signal);
      if (!Array.isArray(replies)) throw readReply(replies);
      return replies.map(readReply);
    },
    subscribe: subscribeOver(url, headers, errorOf),
  });
}

function checked(options: UpstashNodeOptions): UpstashNodeOptions & { readonly url: URL } {
  checkOptions(ACTION, options, OPTION_NAMES);
  const { url, token, timeoutMs } = options;
  // A token in an error or in a name would be a secret in a log, so neither is shown.
  check(ACTION, "url", url, REST_URL);
  check(ACTION, "token", token, TOKEN);
  const base = new URL(url);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return { url: base, token, timeoutMs };
}

/**
 * The reply, or an error. A gateway's own JSON has neither a `result` nor an `error`, and is no
 * reply.
 */
function replyOf(returned: unknown, errorOf: ErrorOf): unknown {
  const { result, error = "no result and no error" } = (returned ?? {}) as Result;
  return result === undefined ? errorOf(error) : result;
}
