/**
 * A server that speaks Redis over HTTP, by the protocol of Upstash, in front of a real Redis
 * server.
 *
 * It has several connections and takes them in turns, so commands of two requests may overtake each
 * other, as they may in a real gateway. Each subscription is a response of server-sent events, in
 * pieces that end anywhere.
 */
import { RespDecoder } from "../../src/redis/decoder.ts";
import { connect, type RedisClient, ReplyError } from "../../src/redis/mod.ts";
import { textReply } from "../../src/redis/reply.ts";
import { commandBytes } from "./command_bytes.ts";

/** Connections to the server. */
const CONNECTIONS = 4;

/** What the bridge does to the commands that pass. */
export interface BridgeFaults {
  /** How long a request waits before it is executed, in milliseconds. */
  delayMs?: () => number;
  /** What a gateway that gave up answers in place of the reply to a request, if it does. */
  givesUp?: (url: URL) => Response | undefined;
  /** How the lines of events end. */
  lineEnd?: "\n" | "\r\n";
}

/** A bridge. Made by {@linkcode startBridge}. */
export interface Bridge extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** How many requests have come. */
  readonly requests: number;
  /** How many subscriptions are open. */
  readonly subscriptions: number;
  /** Ends all subscriptions, as a gateway does after some time. */
  endSubscriptions(): void;
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
  const subscriptions = new Set<() => void>();
  const subscribe = async (channel: string): Promise<Response> => {
    const { hostname, port } = new URL(redisUrl);
    const socket = await Deno.connect({ hostname, port: Number(port) });
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const end = () => {
      if (!subscriptions.delete(end)) return;
      socket.close();
      writer.close().catch(() => {});
    };
    const write = (text: string) => {
      for (const piece of pieces(text.replaceAll("\n", faults.lineEnd ?? "\n"))) {
        writer.write(piece).catch(end);
      }
    };
    subscriptions.add(end);
    write(": welcome\n\n");
    const decoder = new RespDecoder((reply) => {
      write(`data: ${(textReply(reply) as unknown[]).join(",")}\n\n`);
    });
    writer.closed.catch(end);
    await socket.write(commandBytes(["SUBSCRIBE", channel]));
    (async () => {
      const buffer = new Uint8Array(4_096);
      for (let count; (count = await socket.read(buffer)) !== null;) decoder.push(buffer, count);
    })().catch(() => {}).finally(end);
    return new Response(readable, { headers: { "content-type": "text/event-stream" } });
  };
  const handle = async (request: Request): Promise<Response> => {
    requests++;
    const authorization = request.headers.get("authorization");
    if (authorization !== `Bearer ${token}`) {
      const error = `WRONGPASS invalid or missing auth token: ${authorization}`;
      return Response.json({ error }, { status: 401 });
    }
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/subscribe/")) {
      return await subscribe(decodeURIComponent(pathname.slice("/subscribe/".length)));
    }
    const body = await request.json();
    const delayMs = faults.delayMs?.() ?? 0;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (pathname === "/pipeline") {
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
      const replaced = faults.givesUp?.(new URL(request.url));
      if (!replaced) return response;
      await response.body?.cancel();
      return replaced;
    } catch {
      // The server cannot be reached, or does not reply.
    }
    return new Response("Bad gateway", { status: 502 });
  });
  const close = async () => {
    for (const end of subscriptions) end();
    await server.shutdown();
    await Promise.all(clients.map((_client, index) => drop(index)));
  };
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    token,
    get requests() {
      return requests;
    },
    get subscriptions() {
      return subscriptions.size;
    },
    endSubscriptions() {
      for (const end of subscriptions) end();
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

const encoder = new TextEncoder();

/** A text as bytes, cut at a random place. */
function pieces(text: string): Uint8Array[] {
  const bytes = encoder.encode(text);
  const cut = Math.floor(Math.random() * bytes.length);
  return [bytes.subarray(0, cut), bytes.subarray(cut)];
}
