/**
 * A node on Redis over HTTP, by the protocol of Upstash: for runtimes without TCP. It needs nothing but `fetch`.
 *
 * @module
 */
import { commandNode, type LockNode } from "@hasp/redlock/nodes";

/** The reply to one command. */
interface RestReply {
  readonly result?: unknown;
  readonly error?: string;
}

/** Makes a node of a database, from its REST URL and its token. */
export function upstashNode(url: string, token: string): LockNode {
  const post = async (path: string, body: unknown, signal: AbortSignal) => {
    const response = await fetch(new URL(path, url), {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      signal,
    });
    const text = await response.text();
    // A gateway answers with a status and a page; the server answers with JSON, also to a command that fails.
    if (!/^[[{]/.test(text)) throw new Error(`HTTP ${response.status}`);
    return JSON.parse(text);
  };
  return commandNode({
    name: new URL(url).host,
    send: async (args, signal) => replyOf(await post("/", args, signal)),
    pipeline: async (commands, signal) => {
      const replies: RestReply[] | RestReply = await post("/pipeline", commands, signal);
      return Array.isArray(replies) ? replies.map(valueOf) : [replyOf(replies)];
    },
  });
}

function valueOf({ result, error }: RestReply): unknown {
  return error === undefined ? result : new Error(error);
}

function replyOf(reply: RestReply): unknown {
  const value = valueOf(reply);
  if (value instanceof Error) throw value;
  return value;
}
