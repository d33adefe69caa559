/**
 * A TCP proxy on this machine between clients and one server, with faults on demand.
 *
 * @module
 */
import { parseAddress, type RedisAddress } from "../../redis/address.ts";
import type { DialTarget, StreamHandler, StreamPeer } from "../../transport/node_listener.ts";
import { check, NUMBER, rangeError } from "../../validate.ts";
import { checkDelayMs, type Faults, NO_FAULTS } from "../pipe.ts";
import { onRandomPort, Port } from "../ports.ts";
import { countedNetwork, type Network } from "../time/traffic.ts";
import { Link } from "./link.ts";

/**
 * What passes a proxy: `requests` from clients to the server, or `replies` from the server to
 * clients.
 */
export type ProxyDirection = "requests" | "replies";

const DIRECTIONS: readonly ProxyDirection[] = ["requests", "replies"];

/**
 * A TCP proxy in front of one server, and the faults of a network that a test can cause. {@linkcode
 * startProxy} starts it. Close it, or declare it with `await using`.
 */
export interface FaultProxy extends AsyncDisposable {
  /**
   * The address for clients: that of the server, but with the host 127.0.0.1 and the port of the
   * proxy.
   */
  readonly address: string;
  /** The port of the proxy on 127.0.0.1; it stays the same after {@linkcode refuse}. */
  readonly port: number;
  /** The number of clients' connections that are open now. */
  readonly connections: number;
  /** The number of connections that were accepted since the start. */
  readonly accepted: number;
  /**
   * The number of bytes that wait in the proxy, because of a delay, a bandwidth or {@linkcode
   * hang}.
   */
  readonly buffered: {
    /** From clients. */
    readonly requests: number;
    /** From the server. */
    readonly replies: number;
  };

  /**
   * Delays what arrives from now on, in order. What waits already keeps its old delay.
   *
   * @param delayMs The delay in milliseconds, from 0 (no delay) to 2^31 − 1.
   * @param direction What is delayed; requests and replies by default, so that a round trip takes
   * twice the delay.
   * @throws {TypeError} If `delayMs` is not a number, or `direction` is unknown.
   * @throws {RangeError} If `delayMs` is out of range.
   */
  delay(delayMs: number, direction?: ProxyDirection): void;

  /**
   * Limits the bandwidth of each connection. The limit holds for what waits already, too.
   *
   * @param bytesPerSecond The bandwidth in bytes per second, greater than 0; `Infinity` for no
   * limit.
   * @param direction What is limited; requests and replies, each by itself, by default.
   * @throws {TypeError} If `bytesPerSecond` is not a number, or `direction` is unknown.
   * @throws {RangeError} If `bytesPerSecond` is out of range.
   */
  slow(bytesPerSecond: number, direction?: ProxyDirection): void;

  /**
   * Holds back all data; connections stay open, and new ones are accepted. After {@linkcode resume}
   * the data arrives, also what was sent by clients that have closed the connection meanwhile. With
   * `"requests"` commands arrive late; with `"replies"` they take effect, and the client does not
   * learn of it.
   *
   * @param direction What is held back; requests and replies by default.
   * @throws {TypeError} If `direction` is unknown.
   */
  hang(direction?: ProxyDirection): void;

  /**
   * Closes all connections on both sides, and drops what waits on them. New connections are
   * accepted.
   */
  cut(): void;

  /**
   * Closes the server's side of all connections, and leaves the clients' side open: whatever a
   * client sends is never answered, as after the crash of a machine. New connections are accepted
   * and work.
   */
  halfOpen(): void;

  /**
   * Resets all connections and refuses new ones, until {@linkcode resume}. Idempotent.
   *
   * @returns A promise that resolves when the port is closed.
   */
  refuse(): Promise<void>;

  /**
   * Ends delays, limits, {@linkcode hang} and {@linkcode refuse}: forwards what waits before this
   * returns, and accepts connections again. A connection that {@linkcode cut} or {@linkcode
   * halfOpen} broke stays broken. Idempotent.
   *
   * @returns A promise that resolves when connections are accepted.
   * @throws {Error} If another program has taken the port meanwhile, or the proxy was closed.
   */
  resume(): Promise<void>;

  /**
   * Closes the port and all connections. Idempotent.
   *
   * @returns A promise that resolves when nothing of them is left.
   */
  close(): Promise<void>;

  /** Does what {@linkcode close} does, at the end of `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a TCP proxy on 127.0.0.1 in front of a server, which forwards everything until a test
 * causes a fault. The server is one of {@linkcode startNodes}, or a real one. In Deno this needs
 * the permission to connect to the server, and `--allow-net=127.0.0.1`.
 *
 * Delays follow the clock of {@linkcode startFakeClock} while it is in use.
 *
 * @example A command that takes effect, and whose reply is lost
 * ```ts
 * import { assert, assertRejects } from "@std/assert";
 * import { connect, ConnectionError } from "@hasp/redlock/redis";
 * import { startNodes, startProxy } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(1);
 * await using proxy = await startProxy(nodes.addresses[0]);
 * await using client = await connect(proxy.address);
 * proxy.hang("replies");
 * const reply = client.send(["SET", "a", "1"]);
 * while (proxy.buffered.replies === 0) await new Promise((resolve) => setTimeout(resolve, 1));
 * proxy.cut();
 * const error = await assertRejects(() => reply, ConnectionError);
 * assert(error.outcome === "unknown");
 * await using other = await connect(nodes.addresses[0]);
 * assert(await other.send(["GET", "a"]) === "1");
 * ```
 *
 * @example A slow network
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes, startProxy } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(1);
 * await using proxy = await startProxy(nodes.addresses[0]);
 * await using redlock = createRedlock([proxy.address], { ttlMs: 5_000 });
 * proxy.delay(20);
 * const startMs = performance.now();
 * await using lock = await redlock.acquire("invoice:42");
 * assert(performance.now() - startMs > 39);
 * assert(lock.remainingMs() < 5_000);
 * ```
 *
 * @param address The address of the server, as for `createRedlock`. TLS passes unchanged, so the
 * certificate must be valid for 127.0.0.1, or for the client's `tls.serverName`.
 * @returns The proxy, once it accepts connections.
 * @throws {TypeError} If the address is malformed. No message contains credentials.
 */
export async function startProxy(address: string | URL): Promise<FaultProxy> {
  const server = parseAddress(address);
  const network = await countedNetwork();
  return await onRandomPort(async (port) => {
    const proxy = new TcpProxy(port, network, server);
    await proxy.listening.start();
    return proxy;
  });
}

class TcpProxy implements FaultProxy {
  readonly port: number;
  readonly address: string;
  readonly listening: Port;
  accepted = 0;
  readonly #network: Network;
  readonly #target: DialTarget;
  readonly #faults = { requests: { ...NO_FAULTS }, replies: { ...NO_FAULTS } };
  readonly #links = new Set<Link>();

  constructor(port: number, network: Network, server: RedisAddress) {
    this.port = port;
    this.address = addressOf(server, port);
    this.listening = new Port(() => network.listen(port, (client) => this.#accept(client)));
    this.#network = network;
    this.#target = server.target;
  }

  get connections(): number {
    return [...this.#links].filter(({ clientIsOpen }) => clientIsOpen).length;
  }

  get buffered(): { readonly requests: number; readonly replies: number } {
    const links = [...this.#links];
    const waiting = (direction: ProxyDirection) =>
      links.reduce((sum, link) => sum + link[direction].bytes, 0);
    return { requests: waiting("requests"), replies: waiting("replies") };
  }

  delay(delayMs: number, direction?: ProxyDirection): void {
    checkDelayMs("delay data", delayMs);
    this.#set({ delayMs }, direction);
  }

  slow(bytesPerSecond: number, direction?: ProxyDirection): void {
    check("slow data", "bytesPerSecond", bytesPerSecond, NUMBER);
    if (!(bytesPerSecond > 0)) {
      throw rangeError("slow data", "bytesPerSecond", "must be greater than 0", bytesPerSecond);
    }
    this.#set({ bytesPerSecond }, direction);
    for (const { requests, replies } of this.#links) {
      requests.flush();
      replies.flush();
    }
  }

  hang(direction?: ProxyDirection): void {
    this.#set({ hung: true }, direction);
  }

  cut(): void {
    for (const link of this.#links) link.cut();
  }

  halfOpen(): void {
    for (const link of this.#links) link.cutServer();
  }

  refuse(): Promise<void> {
    return this.listening.change(() => this.#stop());
  }

  resume(): Promise<void> {
    this.#set(NO_FAULTS);
    for (const link of this.#links) {
      link.requests.hurry();
      link.replies.hurry();
    }
    return this.listening.change(async () => {
      if (this.listening.isOver) {
        throw new Error(`Cannot resume proxy ${this.port} as it was closed`);
      }
      await this.listening.open();
    });
  }

  close(): Promise<void> {
    return this.listening.end(() => this.#stop());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #set(faults: Partial<Faults>, direction?: ProxyDirection): void {
    if (direction !== undefined && !DIRECTIONS.includes(direction)) {
      throw new TypeError(
        `Cannot disturb proxy as 'direction' must be one of ${DIRECTIONS.join(", ")}`,
      );
    }
    for (const each of direction ? [direction] : DIRECTIONS) {
      Object.assign(this.#faults[each], faults);
    }
  }

  #accept(client: StreamPeer): Link {
    this.accepted++;
    const dialServer = (handler: StreamHandler) => this.#network.dial(this.#target, handler);
    const link = new Link(client, dialServer, this.#faults);
    this.#links.add(link);
    link.over.then(() => this.#links.delete(link));
    return link;
  }

  async #stop(): Promise<void> {
    for (const link of this.#links) link.cutServer();
    await this.listening.close();
    await Promise.all([...this.#links].map(({ over }) => over));
  }
}

function addressOf({ target, username = "", password, database }: RedisAddress, port: number) {
  const scheme = target.kind === "tls" ? "rediss" : "redis";
  const credentials = password === undefined
    ? ""
    : `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`;
  return `${scheme}://${credentials}127.0.0.1:${port}${database === 0 ? "" : `/${database}`}`;
}
