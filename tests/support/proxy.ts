/**
 * A TCP proxy on loopback between a client and one server, which misbehaves on demand: late,
 * silent, cut, refusing, half-open.
 *
 * @example A request that is delivered, its reply lost
 * ```ts
 * import { startProxy } from "./proxy.ts";
 * import { startServer } from "./servers.ts";
 *
 * await using server = await startServer();
 * await using proxy = startProxy(server);
 * proxy.stallReplies();
 * // … a client of proxy.url sends a command …
 * proxy.cut();
 * ```
 *
 * @module
 */

import { listenOnRandomPort } from "./servers.ts";

/** How long bytes stay in the proxy, per direction. */
export interface ProxyDelay {
  /** From client to server. @default 0 */
  requestsMs?: number;
  /** From server to client. @default 0 */
  repliesMs?: number;
}

/** Options of {@linkcode startProxy}. */
export interface ProxyOptions {
  /** Delay of each direction, or one number for both; see {@linkcode Proxy.delay}. */
  delayMs?: number | ProxyDelay;
}

/** What both directions of all connections of a proxy obey. */
interface Direction {
  delayMs: number;
  stalled: boolean;
}

/** Starts a proxy in front of the server on `target.port` of 127.0.0.1; it accepts at once. */
export function startProxy(target: { port: number }, options: ProxyOptions = {}): FaultProxy {
  const proxy = new FaultProxy(target.port);
  if (options.delayMs !== undefined) proxy.delay(options.delayMs);
  return proxy;
}

/** A running proxy. Made by {@linkcode startProxy}. */
export class FaultProxy implements AsyncDisposable {
  /** Address for clients, without credentials. */
  readonly url: string;
  /** Port on 127.0.0.1; stays the same when refused and accepted again. */
  readonly port: number;
  /** How many connections were accepted so far. */
  acceptedTotal = 0;
  readonly #targetPort: number;
  readonly #requests: Direction = { delayMs: 0, stalled: false };
  readonly #replies: Direction = { delayMs: 0, stalled: false };
  readonly #links = new Set<Link>();
  readonly #tasks = new Set<Promise<void>>();
  #listener?: Deno.TcpListener;
  #accepting?: Promise<void>;

  /** Listens at once; tests call {@linkcode startProxy} instead. */
  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#listener = listenOnRandomPort("127.0.0.1");
    this.port = this.#listener.addr.port;
    this.url = `redis://127.0.0.1:${this.port}`;
    this.#accepting = this.#acceptAll(this.#listener);
  }

  /** Number of connections open right now. */
  get connections(): number {
    return this.#links.size;
  }

  /** Number of bytes from clients, respectively servers, that wait in the proxy. */
  get held(): { requestBytes: number; replyBytes: number } {
    let requestBytes = 0;
    let replyBytes = 0;
    for (const link of this.#links) {
      requestBytes += link.requests.heldBytes;
      replyBytes += link.replies.heldBytes;
    }
    return { requestBytes, replyBytes };
  }

  /** Delays what is received from now on; order is kept. One number sets both directions. */
  delay(delayMs: number | ProxyDelay): void {
    const both = typeof delayMs === "number";
    this.#requests.delayMs = both ? delayMs : delayMs.requestsMs ?? 0;
    this.#replies.delayMs = both ? delayMs : delayMs.repliesMs ?? 0;
  }

  /** Goes on accepting and receiving, and forwards nothing: a hung node. */
  stall(): void {
    this.stallRequests();
    this.stallReplies();
  }

  /** Holds back requests only: with {@linkcode resume}, commands that arrive late. */
  stallRequests(): void {
    this.#requests.stalled = true;
  }

  /** Holds back replies only: commands take effect, and nobody gets the replies. */
  stallReplies(): void {
    this.#replies.stalled = true;
  }

  /** Forwards again, first everything held back. */
  resume(): void {
    this.#requests.stalled = false;
    this.#replies.stalled = false;
    for (const link of this.#links) link.flush();
  }

  /** Closes all connections, on both sides, with what is held back on them. */
  cut(): void {
    for (const link of this.#links) link.close();
  }

  /** Closes the server's end of all connections; the client's stay open and are never answered. */
  halfOpen(): void {
    for (const link of this.#links) link.orphan();
  }

  /** Closes the listener: new connections are refused, the present ones stay. Idempotent. */
  async refuse(): Promise<void> {
    this.#listener?.close();
    this.#listener = undefined;
    // The port stays open until the accept under way has failed.
    await this.#accepting;
  }

  /** Listens again after {@linkcode refuse}, on the same port. Idempotent. */
  accept(): void {
    if (this.#listener !== undefined) return;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: this.port });
    this.#accepting = this.#acceptAll(this.#listener);
  }

  /** Closes listener and connections, and waits until nothing of them is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.refuse();
    while (this.#tasks.size > 0) {
      this.cut();
      await Promise.race(this.#tasks);
    }
  }

  #track(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  async #acceptAll(listener: Deno.Listener): Promise<void> {
    while (listener === this.#listener) {
      const conn = await listener.accept().catch(() => undefined);
      if (conn === undefined) continue;
      this.acceptedTotal++;
      this.#track(this.#serve(conn as Deno.TcpConn));
    }
  }

  async #serve(client: Deno.TcpConn): Promise<void> {
    const link = new Link(client, this.#requests, this.#replies);
    this.#links.add(link);
    try {
      await link.run(this.#targetPort);
    } finally {
      this.#links.delete(link);
    }
  }
}

/** One client's connection and the one to the server that belongs to it. */
class Link {
  readonly requests: Pipe;
  readonly replies: Pipe;
  readonly #client: Deno.TcpConn;
  #server?: Deno.TcpConn;
  #closed = false;
  #orphaned = false;

  constructor(client: Deno.TcpConn, requests: Direction, replies: Direction) {
    this.#client = client;
    client.setNoDelay(true);
    this.requests = new Pipe(requests, () => this.close());
    this.replies = new Pipe(replies, () => this.close());
    this.replies.open(client);
  }

  /** Forwards until the connection is closed. */
  async run(targetPort: number): Promise<void> {
    await Promise.all([
      this.#receive(this.#client, this.requests),
      this.#connect(targetPort),
    ]);
  }

  flush(): void {
    this.requests.flush();
    this.replies.flush();
  }

  orphan(): void {
    this.#orphaned = true;
    this.requests.close();
    this.replies.close();
    this.#server?.close();
    this.#server = undefined;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.orphan();
    this.#client.close();
  }

  async #connect(port: number): Promise<void> {
    const server = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    if (server === undefined) return this.replies.push(undefined);
    if (this.#orphaned) return server.close();
    server.setNoDelay(true);
    this.#server = server;
    this.requests.open(server);
    await this.#receive(server, this.replies);
  }

  async #receive(conn: Deno.TcpConn, pipe: Pipe): Promise<void> {
    const chunk = new Uint8Array(65_536);
    for (;;) {
      const length = await conn.read(chunk).catch(() => null);
      if (length !== null) {
        pipe.push(chunk.slice(0, length));
        continue;
      }
      if (!this.#orphaned) return pipe.push(undefined);
      // The server's end is gone on purpose; only the client's own closing ends a half-open connection.
      if (conn === this.#client) this.close();
      return;
    }
  }
}

/** What travels one way: chunks with the time they are due, `undefined` for the end of the stream. */
class Pipe {
  heldBytes = 0;
  readonly #direction: Direction;
  readonly #onEnd: () => void;
  readonly #queue: { bytes: Uint8Array | undefined; dueMs: number }[] = [];
  #conn?: Deno.TcpConn;
  #timer?: ReturnType<typeof setTimeout>;
  #writing = false;
  #closed = false;

  constructor(direction: Direction, onEnd: () => void) {
    this.#direction = direction;
    this.#onEnd = onEnd;
  }

  open(conn: Deno.TcpConn): void {
    this.#conn = conn;
    this.flush();
  }

  push(bytes: Uint8Array | undefined): void {
    if (this.#closed) return;
    this.heldBytes += bytes?.length ?? 0;
    this.#queue.push({ bytes, dueMs: performance.now() + this.#direction.delayMs });
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    const head = this.#queue[0];
    const waits = this.#closed || this.#writing || this.#direction.stalled;
    if (head === undefined || waits) return;
    const remainingMs = head.dueMs - performance.now();
    if (remainingMs > 0) {
      this.#timer = setTimeout(() => this.flush(), remainingMs);
    } else if (head.bytes === undefined) {
      this.#onEnd();
    } else if (this.#conn !== undefined) {
      this.#queue.shift();
      this.#write(this.#conn, head.bytes);
    }
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    this.heldBytes = 0;
    clearTimeout(this.#timer);
  }

  async #write(conn: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
    this.#writing = true;
    try {
      for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
      if (!this.#closed) this.heldBytes -= bytes.length;
    } catch {
      // The reader of the other direction sees the same end and passes it on.
    }
    this.#writing = false;
    this.flush();
  }
}
