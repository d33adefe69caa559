/**
 * The floor: what acquiring and releasing costs when nothing is decided, checked or remembered.
 * Commands are computed ahead, one buffer a tick is written to every node, and a step is over when
 * a quorum of the nodes has answered it. What a library takes beyond that is its own.
 *
 * Every node is sent the same bytes in the same order, so the floor needs no count per command: a
 * node that answered `n` times has answered the first `n` commands, and the commands a quorum has
 * answered are the first `m`, `m` being the quorum-th greatest of those numbers.
 */

import { type Contender, TTL_MS } from "./contender.ts";

const RELEASE_SCRIPT =
  'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';

/** Bytes that are handed out from one allocation. */
const SLAB_BYTES = 262_144;

const PLUS = 0x2b;
const COLON = 0x3a;

const encoder = new TextEncoder();

/** One node's socket, as the runtime at hand makes it. */
export interface FloorSocket {
  /** Sends bytes, which never change afterwards. */
  write(bytes: Uint8Array): void;
  /** Closes at once. */
  close(): void;
}

/** What a socket calls with each chunk received; the answer tells whether more replies are due. */
export type OnChunk = (chunk: Uint8Array, length: number) => boolean;

/** One resource's commands, and where its pair stands. */
interface Pair {
  readonly set: Uint8Array;
  readonly release: Uint8Array;
  step: "set" | "release" | "hold";
  settle: () => void;
}

/** The part of the floor that is the same for all runtimes. */
export abstract class Floor implements Contender {
  readonly #prepared = new Map<string, Pair>();
  readonly #nodes: FloorNode[] = [];
  readonly #waiting: Pair[] = [];
  #waitingFrom = 0;
  #steps = 0;
  #stepsDone = 0;
  #sha = "";
  #slab = new Uint8Array(SLAB_BYTES);
  #start = 0;
  #end = 0;
  readonly #flush = (): void => {
    if (this.#start === this.#end) return;
    const bytes = this.#slab.subarray(this.#start, this.#end);
    this.#start = this.#end;
    for (const node of this.#nodes) node.socket.write(bytes);
  };

  /** Opens a socket that passes what it receives to `onChunk`. */
  protected abstract connect(
    hostname: string,
    port: number,
    onChunk: OnChunk,
  ): Promise<FloorSocket>;

  async open(urls: readonly string[]): Promise<void> {
    const load = command("SCRIPT", "LOAD", RELEASE_SCRIPT);
    await Promise.all(urls.map(async (url) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      let onChunk: OnChunk = (chunk, length) => {
        resolve(new TextDecoder().decode(chunk.subarray(0, length)).split("\r\n")[1]!);
        return false;
      };
      const { hostname, port } = new URL(url);
      const socket = await this.connect(
        hostname,
        Number(port),
        (chunk, length) => onChunk(chunk, length),
      );
      socket.write(load);
      this.#sha = await promise;
      const node = new FloorNode(socket);
      onChunk = (chunk, length) => {
        node.count(chunk, length);
        this.#advance();
        return node.answered < this.#steps;
      };
      this.#nodes.push(node);
    }));
  }

  prepare(resources: readonly string[]): void {
    this.#prepared.clear();
    for (const resource of resources) this.#prepared.set(resource, this.#encode(resource));
  }

  pair(resource: string): Promise<void> {
    const pair = this.#prepared.get(resource) ?? this.#encode(resource);
    return new Promise((resolve) => {
      pair.step = "set";
      pair.settle = resolve;
      this.#send(pair, pair.set);
    });
  }

  hold(resource: string): Promise<unknown> {
    const pair = this.#prepared.get(resource) ?? this.#encode(resource);
    return new Promise((resolve) => {
      pair.step = "hold";
      pair.settle = () => resolve(resource);
      this.#send(pair, pair.set);
    });
  }

  close(): Promise<void> {
    for (const node of this.#nodes) node.socket.close();
    return Promise.resolve();
  }

  #encode(resource: string): Pair {
    const value = Array.from(
      crypto.getRandomValues(new Uint8Array(20)),
      (byte) => byte.toString(16).padStart(2, "0"),
    ).join("");
    return {
      set: command("SET", resource, value, "NX", "PX", String(TTL_MS)),
      release: command("EVALSHA", this.#sha, "1", resource, value),
      step: "set",
      settle: () => {},
    };
  }

  #send(pair: Pair, bytes: Uint8Array): void {
    if (this.#end + bytes.length > SLAB_BYTES) {
      this.#flush();
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#start = this.#end = 0;
    }
    if (this.#start === this.#end) queueMicrotask(this.#flush);
    this.#slab.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#steps++;
    this.#waiting.push(pair);
  }

  /** Goes on with every pair whose command a quorum of the nodes has answered by now. */
  #advance(): void {
    const nodes = this.#nodes;
    const answered = quorumAnswered(nodes);
    while (this.#stepsDone < answered) {
      this.#stepsDone++;
      const pair = this.#waiting[this.#waitingFrom++]!;
      if (this.#waitingFrom === this.#waiting.length) this.#waiting.length = this.#waitingFrom = 0;
      if (pair.step === "set") {
        pair.step = "release";
        this.#send(pair, pair.release);
      } else {
        pair.settle();
      }
    }
  }
}

class FloorNode {
  answered = 0;
  readonly socket: FloorSocket;
  /** Bytes of a reply that began in an earlier chunk and goes on in the next. */
  #skip = 0;

  constructor(socket: FloorSocket) {
    this.socket = socket;
  }

  /** Counts replies by their first byte: `+OK` has five bytes, `:1` four; nothing else may come. */
  count(chunk: Uint8Array, length: number): void {
    let at = this.#skip;
    while (at < length) {
      const type = chunk[at];
      if (type === PLUS) at += 5;
      else if (type === COLON) at += 4;
      else {throw new Error(
          `Unexpected reply: ${new TextDecoder().decode(chunk.subarray(at, length))}`,
        );}
      this.answered++;
    }
    this.#skip = at - length;
  }
}

/** The greatest number that at least a quorum of the nodes has reached. */
function quorumAnswered(nodes: readonly FloorNode[]): number {
  const quorum = (nodes.length >> 1) + 1;
  let most = 0;
  for (const { answered } of nodes) {
    if (answered <= most) continue;
    let reached = 0;
    for (const other of nodes) if (other.answered >= answered) reached++;
    if (reached >= quorum) most = answered;
  }
  return most;
}

function command(...args: string[]): Uint8Array {
  const bulks = args.map((arg) => `$${arg.length}\r\n${arg}\r\n`);
  return encoder.encode(`*${args.length}\r\n${bulks.join("")}`);
}
