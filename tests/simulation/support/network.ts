/**
 * The simulated network: connections that deliver in order or not at all, as TCP does, between
 * clients and nodes whose ways to each other can be slow, stalled or gone, each direction by
 * itself.
 */
import { Buffer } from "node:buffer";
import type { EventLoop, Turn } from "./event_loop.ts";
import type { Connect, Transport } from "./library.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { NodeSession, SimNode } from "./sim_node.ts";
import type { SimProcess } from "./sim_process.ts";
import type { Trace } from "./trace.ts";

/** How long a slow write takes at the most, in milliseconds. */
export const SLOW_WRITE_MS = 300;

/** How the network treats everybody. */
export interface NetworkManners {
  /** The shortest way from one machine to another, in milliseconds. */
  readonly delayMs: number;
  /** What may come on top, in milliseconds; most packets get little of it. */
  readonly jitterMs: number;
  /** How likely bytes arrive in two pieces. */
  readonly splitChance: number;
  /** How likely a write takes only a part of the bytes. */
  readonly partialWriteChance: number;
  /** How likely a write is a while about it, as the machine's buffer is full. */
  readonly slowWriteChance: number;
}

/** The direction of a way: to the node or back. */
export type Direction = "requests" | "replies";

/** What a new connection meets. */
export type ConnectMood = "accepted" | "refused" | "blackholed";

/** The way from one machine to another. */
class Link {
  /** What is added to every delay, in milliseconds. */
  extraMs = 0;
  /**
   * Takes the replies of some requests, and of all that come after them; the client notices if the
   * connection is reset.
   */
  trap: { takes(bytes: string): boolean; reset: boolean } | undefined = undefined;
  /** How many partitions are in the way. */
  #blocks = 0;
  readonly #held = new Set<Pipe>();

  get blocked(): boolean {
    return this.#blocks > 0;
  }

  hold(pipe: Pipe): void {
    this.#held.add(pipe);
  }

  block(): void {
    this.#blocks++;
  }

  unblock(): void {
    if (this.#blocks === 0 || --this.#blocks > 0) return;
    const held = [...this.#held];
    this.#held.clear();
    for (const pipe of held) pipe.flush();
  }
}

/**
 * One direction of one connection: what goes in comes out in order, or not at all. Bytes are byte
 * strings.
 */
class Pipe {
  /** Nothing comes through any more, and neither end notices. */
  dead = false;
  readonly #loop: EventLoop;
  readonly #link: Link;
  readonly #random: SeededRandom;
  readonly #manners: NetworkManners;
  readonly #deliver: (bytes: string) => Turn | void;
  /** When the last of what is under way comes at the earliest. */
  #lastMs = 0;
  readonly #underWay: { readonly atMs: number; readonly bytes: string }[] = [];
  /** The last bytes that came out. */
  last: string | undefined;

  constructor(
    loop: EventLoop,
    link: Link,
    random: SeededRandom,
    manners: NetworkManners,
    deliver: (bytes: string) => Turn | void,
  ) {
    this.#loop = loop;
    this.#link = link;
    this.#random = random;
    this.#manners = manners;
    this.#deliver = deliver;
  }

  send(bytes: string, atMs: number): void {
    if (bytes.length === 0) return;
    const { splitChance } = this.#manners;
    if (bytes.length > 1 && splitChance > 0 && this.#random.chance(splitChance)) {
      const at = this.#random.integer(1, bytes.length - 1);
      this.#post(bytes.slice(0, at), atMs);
      this.#post(bytes.slice(at), atMs);
    } else {
      this.#post(bytes, atMs);
    }
  }

  /** What waited for the way to be free comes out. */
  flush(): void {
    this.#loop.at(this.#loop.nowMs, this.#arrive);
  }

  /** What would overtake the bytes before comes together with them, in one event. */
  #post(bytes: string, sentAtMs: number): void {
    const tookMs = oneWayMs(this.#link, this.#random, this.#manners);
    const atMs = Math.max(this.#lastMs, sentAtMs + tookMs);
    const together = atMs === this.#lastMs && this.#underWay.length > 0;
    this.#lastMs = atMs;
    this.#underWay.push({ atMs, bytes });
    if (!together) this.#loop.at(atMs, this.#arrive);
  }

  readonly #arrive = (): Turn | void => {
    if (this.dead) return;
    if (this.#link.blocked) return this.#link.hold(this);
    const underWay = this.#underWay;
    let turn: Turn | void = undefined;
    while (underWay.length > 0 && underWay[0].atMs <= this.#loop.nowMs) {
      this.last = underWay.shift()!.bytes;
      turn = this.#deliver(this.last) ?? turn;
    }
    return turn;
  };
}

function oneWayMs(link: Link, random: SeededRandom, manners: NetworkManners): number {
  const { delayMs, jitterMs } = manners;
  return delayMs + link.extraMs + Math.round(jitterMs * random.fraction() ** 3 * 1_000) / 1_000;
}

/** One connection, seen from both ends. */
class SimConnection implements Transport {
  readonly client: SimProcess;
  readonly node: SimNode;
  readonly requests: Pipe;
  readonly replies: Pipe;
  /** If it is there, the client asks an idle connection by `PING`. */
  readonly unref: (() => void) | undefined;
  session: NodeSession;
  readonly #random: SeededRandom;
  readonly #manners: NetworkManners;
  readonly #onClosed: () => void;
  #unread: string[] = []; // a reader that was woken takes all of it
  #closed = false;
  #broken: Error | undefined;
  #reader: (() => void) | undefined;
  #writer: (() => void) | undefined;

  constructor(
    network: Network,
    client: SimProcess,
    node: SimNode,
    onClosed: (connection: SimConnection) => void,
  ) {
    const { loop, random, manners } = network;
    this.client = client;
    this.unref = client.asksIdle ? () => {} : undefined;
    this.node = node;
    this.#random = random;
    this.#manners = manners;
    this.#onClosed = () => onClosed(this);
    this.session = node.accept(client.name, (bytes) => this.replies.send(bytes, loop.nowMs));
    const way = network.link(client.name, node.index, "requests");
    this.requests = new Pipe(loop, way, random, manners, (bytes) => {
      const taken = way.trap?.takes(bytes);
      if (taken) {
        this.replies.dead = true;
        this.session.answers = false;
      }
      if (node.up && !this.session.open) {
        this.breakAt(0, "connection reset by a server that restarted");
      } else node.receive(this.session, bytes);
      if (taken && way.trap!.reset) this.breakAt(loop.nowMs, "connection reset by peer");
    });
    const back = network.link(client.name, node.index, "replies");
    this.replies = new Pipe(loop, back, random, manners, (bytes) => {
      if (this.open && this.#unread.push(bytes) === 1) return client.enter(this.#wake);
    });
  }

  get open(): boolean {
    return !this.#closed && !this.#broken;
  }

  read(buffer: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) => {
      const read = () => {
        if (this.#unread.length > 0) resolve(this.#take(buffer));
        else if (this.#closed) resolve(null);
        else if (this.#broken) reject(this.#broken);
        else this.#reader = read;
      };
      read();
    });
  }

  #take(buffer: Uint8Array): number {
    const [bytes] = this.#unread;
    const count = Math.min(bytes.length, buffer.length);
    for (let index = 0; index < count; index++) buffer[index] = bytes.charCodeAt(index);
    if (count < bytes.length) this.#unread[0] = bytes.slice(count);
    else this.#unread.shift();
    return count;
  }

  write(bytes: Uint8Array): Promise<number> {
    if (!this.open) return Promise.reject(this.#broken ?? new Error("the stream is closed"));
    const partial = bytes.length > 1 && this.#manners.partialWriteChance > 0 &&
      this.#random.chance(this.#manners.partialWriteChance);
    const count = partial ? this.#random.integer(1, bytes.length - 1) : bytes.length;
    const sent = Buffer.from(bytes.buffer, bytes.byteOffset, count).toString("latin1");
    this.requests.send(sent, this.client.trueMs);
    const { slowWriteChance } = this.#manners;
    if (slowWriteChance === 0 || !this.#random.chance(slowWriteChance)) {
      return Promise.resolve(count);
    }
    return new Promise((resolve) => {
      this.#writer = () => resolve(count);
      this.client.post(
        this.client.trueMs + this.#random.between(0, SLOW_WRITE_MS),
        () => this.#written(),
      );
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unread = [];
    this.#wake();
    this.#written();
    this.#onClosed();
  }

  /** The client's end learns that the connection is gone, in a turn of its own. */
  breakAt(atMs: number, reason: string): void {
    this.client.post(atMs, () => {
      if (this.#closed) return;
      this.#broken = new Error(reason);
      this.#wake();
      this.#written();
    });
  }

  #written(): void {
    const writer = this.#writer;
    this.#writer = undefined;
    writer?.();
  }

  readonly #wake = (): void => {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.();
  };
}

/** All ways and connections. */
export class Network {
  readonly loop: EventLoop;
  readonly random: SeededRandom;
  readonly manners: NetworkManners;
  /** What new connections meet at a node. */
  readonly moods = new Map<number, ConnectMood>();
  readonly #nodes: readonly SimNode[];
  readonly #trace: Trace;
  readonly #links = new Map<string, Link>();
  readonly #connections = new Set<SimConnection>();

  constructor(
    loop: EventLoop,
    random: SeededRandom,
    manners: NetworkManners,
    nodes: readonly SimNode[],
    trace: Trace,
  ) {
    this.loop = loop;
    this.random = random;
    this.manners = manners;
    this.#nodes = nodes;
    this.#trace = trace;
  }

  /** The way between a client and a node. */
  link(client: string, node: number, direction: Direction): Link {
    const name = `${client} ${node} ${direction}`;
    let link = this.#links.get(name);
    if (!link) this.#links.set(name, link = new Link());
    return link;
  }

  /** How a process connects; hosts are named `node-1` and so on. */
  connectOf(client: SimProcess): Connect {
    return (target, { signal }) => {
      const host = target.kind === "tcp" ? target.hostname : "";
      const node = this.#nodes.find(({ name }) => name === host)!;
      return new Promise((resolve, reject) => {
        const abort = () => reject(signal.reason);
        if (signal.aborted) return abort();
        signal.addEventListener("abort", abort, { once: true });
        const atMs = client.trueMs + this.#oneWayMs(client, node, "requests");
        const opened = (transport: Transport) => {
          if (signal.aborted) transport.close();
          else resolve(transport);
        };
        this.loop.at(atMs, () => this.#knock(client, node, opened, reject));
      });
    };
  }

  /** Every open connection between a client and a node; of all clients where none is named. */
  connections(node: number, client?: string): SimConnection[] {
    return [...this.#connections].filter((connection) =>
      connection.node.index === node && (!client || connection.client.name === client)
    );
  }

  /** Breaks connections; what is under way to the node is lost, or comes all the same. */
  cut(node: number, client: string, requests: "lost" | "delivered"): void {
    for (const connection of this.connections(node, client)) {
      if (requests === "lost") connection.requests.dead = true;
      connection.replies.dead = true;
      this.#connections.delete(connection);
      connection.node.drop(connection.session);
      connection.breakAt(this.loop.nowMs + this.random.between(0, 2), "connection reset by peer");
    }
  }

  /** Connections die without a word to either end, in one direction or both. */
  halfOpen(node: number, client: string, directions: readonly Direction[]): void {
    for (const connection of this.connections(node, client)) {
      for (const direction of directions) connection[direction].dead = true;
      if (directions.includes("replies")) connection.session.answers = false;
    }
  }

  /** A node crashes: the machine's kernel closes its connections, unless it dies as well. */
  crash(node: SimNode, silently: boolean): void {
    node.crash();
    for (const connection of this.connections(node.index)) {
      connection.replies.dead = true;
      if (silently) continue;
      this.#connections.delete(connection);
      connection.breakAt(this.loop.nowMs + this.random.between(0, 2), "connection reset by peer");
    }
  }

  /** What a node was sent last comes once more, over a connection that nobody reads. */
  replay(node: SimNode, client: string): void {
    for (const connection of this.connections(node.index, client)) {
      const { last } = connection.requests;
      if (!last || !node.up) continue;
      const ghost = node.accept(client, () => {}, true);
      ghost.state.authenticated = true;
      ghost.state.database = connection.session.state.database;
      node.receive(ghost, last);
      node.drop(ghost);
    }
  }

  #oneWayMs(client: SimProcess, node: SimNode, direction: Direction): number {
    const link = this.link(client.name, node.index, direction);
    return oneWayMs(link, this.random, this.manners);
  }

  /** A connection request has reached the node's machine, if it has. */
  #knock(
    client: SimProcess,
    node: SimNode,
    resolve: (transport: Transport) => void,
    reject: (reason: Error) => void,
  ): void {
    const mood = this.moods.get(node.index) ?? "accepted";
    const blocked = this.link(client.name, node.index, "requests").blocked ||
      this.link(client.name, node.index, "replies").blocked;
    if (mood === "blackholed" || blocked) return;
    const backMs = this.loop.nowMs + this.#oneWayMs(client, node, "replies");
    if (mood === "refused" || !node.up) {
      return client.post(backMs, () => reject(new Error("connection refused")));
    }
    const connection = new SimConnection(this, client, node, (closed) => this.#closed(closed));
    this.#connections.add(connection);
    this.#trace.add(node.name, `accepts ${client.name}`);
    client.post(backMs, () => resolve(connection));
  }

  /** The client's end was closed: the node notices after everything that is under way. */
  #closed(connection: SimConnection): void {
    this.#connections.delete(connection);
    connection.replies.dead = true;
    connection.node.drop(connection.session);
  }
}
