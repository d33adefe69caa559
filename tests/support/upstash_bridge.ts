/**
 * A server that speaks Redis over HTTP, by the protocol of Upstash, in front of a real Redis server.
 *
 * It has several connections and takes them in turns, so commands of two requests may overtake each other, as they may
 * in a real gateway.
 *
 * @module
 */
import { connect, type RedisClient, ReplyError } from "../../src/redis/mod.ts";

/** Connections to the server. */
const CONNECTIONS = 4;

/** What the bridge does to the commands that pass. */
export interface BridgeFaults {
  /** How long a request waits before it is executed, in milliseconds. */
  delayMs?: () => number;
  /** What a gateway that gave up answers in place of the reply to a request, if it does. */
  givesUp?: () => Response | undefined;
}

/** A bridge. Made by {@linkcode startBridge}. */
export interface Bridge extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** How many requests have come. */
  readonly requests: number;
  close(): Promise<void>;
}

/** Starts a bridge to the server at `redisUrl`. */
export function startBridge(redisUrl: string, faults: BridgeFaults = {}): Bridge {
  const token = crypto.randomUUID();
  const clients: (Promise<RedisClient> | undefined)[] = [];
  let requests = 0;
  const drop = async (index: number) => {
    const client = clients[index];
    clients[index] = undefined;
    await client?.then((opened) => opened.close(), () => {});
  };
  const execute = async (command: string[]) => {
    const index = requests % CONNECTIONS;
    try {
      const client = await (clients[index] ??= connect(redisUrl));
      return { result: plain(await client.send(command)) };
    } catch (error) {
      if (error instanceof ReplyError) return { error: error.message };
      await drop(index); // the next request opens a new one at once
      throw error;
    }
  };
  const handle = async (request: Request): Promise<Response> => {
    requests++;
    const body = await request.json();
    if (request.headers.get("authorization") !== `Bearer ${token}`) {
      return Response.json({ error: "WRONGPASS invalid or missing auth token" }, { status: 401 });
    }
    const delayMs = faults.delayMs?.() ?? 0;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (new URL(request.url).pathname === "/pipeline") {
      const replies = [];
      for (const command of body) replies.push(await execute(command));
      return Response.json(replies);
    }
    const reply = await execute(body);
    return Response.json(reply, { status: "error" in reply ? 400 : 200 });
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    try {
      const response = await handle(request);
      const replaced = faults.givesUp?.();
      if (!replaced) return response;
      await response.body?.cancel();
      return replaced;
    } catch {
      // The server cannot be reached, or does not reply.
    }
    return new Response("Bad gateway", { status: 502 });
  });
  const close = async () => {
    await server.shutdown();
    await Promise.all(clients.map((_client, index) => drop(index)));
  };
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    token,
    get requests() {
      return requests;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A reply as JSON has it; an error inside of an array as its text. */
function plain(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(plain);
  return reply instanceof Error ? reply.message : reply;
}
