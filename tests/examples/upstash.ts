/**
 * A node on Redis over HTTP, by the REST protocol of Upstash: for runtimes without TCP. It needs nothing but `fetch`.
 *
 * @module
 */

import { commandNode, type LockNode } from "@hasp/redlock/nodes";

/** Makes a node of a database, from its REST URL and its token. */
export function upstashNode(url: string, token: string): LockNode {
  const post = async (path: string, body: unknown, signal: AbortSignal) => {
    const headers = { authorization: `Bearer ${token}` };
    const init = { method: "POST", headers, body: JSON.stringify(body), signal };
    const response = await fetch(new URL(path, url), init);
    const text = await response.text();
    // The database answers a command that fails with 4xx and JSON. Everything else is a gateway that gave up.
    if (response.status >= 500 || !/^[[{]/.test(text)) throw new Error(`HTTP ${response.status}`);
    return JSON.parse(text);
  };
  return commandNode({
    name: new URL(url).host,
    send: async (args, signal) => {
      const reply = valueOf(await post("/", args, signal));
      if (reply instanceof Error) throw reply;
      return reply;
    },
    pipeline: async (commands, signal) => {
      const replies = await post("/pipeline", commands, signal);
      if (!Array.isArray(replies)) throw valueOf(replies);
      return replies.map(valueOf);
    },
  });
}

/** The reply, or an error. A gateway's own JSON has neither a `result` nor an `error`, and is no reply. */
function valueOf({ result, error }: { result?: unknown; error?: string }): unknown {
  return result === undefined ? new Error(error ?? "no result and no error") : result;
}
