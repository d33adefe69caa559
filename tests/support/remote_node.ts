/**
 * A node in another process: what it is asked there, and what it answers, goes through a WebSocket.
 *
 * @module
 */
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import { type TestAnswer, TestRequest } from "../../src/testing/lock_node/test_request.ts";

/** What the other process is to do. */
interface Call {
  readonly id: number;
  readonly method: "acquire" | "extend" | "release" | "inspect";
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
}

/** What it did. */
interface Result {
  readonly id: number;
  readonly answer?: Pick<TestAnswer, "outcome"> & { readonly message?: string };
  readonly state?: KeyState;
}

/** Answers for a node, on a port that it prints, until the process ends. */
export function serveNode(node: LockNode): void {
  const onListen = ({ port }: { port: number }) => console.log(`ws://127.0.0.1:${port}`);
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onmessage = async ({ data }) => {
      const call: Call = JSON.parse(data);
      socket.send(JSON.stringify({ id: call.id, ...await resultOf(node, call) }));
    };
    return response;
  });
}

async function resultOf(node: LockNode, call: Call): Promise<Omit<Result, "id">> {
  if (call.method === "inspect") return { state: await node.inspect(call.keys[0]) };
  const request = new TestRequest(0, call);
  node[call.method](request, 0);
  const { outcome, error } = await request.answer;
  return { answer: { outcome, message: error?.message } };
}

/** The node at such a port. */
export class RemoteNode implements LockNode {
  readonly name = "remote";
  readonly #socket: WebSocket;
  readonly #waiting: ((result: Result) => void)[] = [];

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const result: Result = JSON.parse(data);
      this.#waiting[result.id](result);
    };
  }

  /** Connects to it. */
  static async connect(url: string): Promise<RemoteNode> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    return new RemoteNode(socket);
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    request.maybeSet |= 1 << nodeIndex;
    this.#ask("acquire", request, nodeIndex);
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#ask("extend", request, nodeIndex);
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#ask("release", request, nodeIndex);
  }

  async inspect(key: string): Promise<KeyState | undefined> {
    const call = { method: "inspect", keys: [key], value: "", ttlMs: 0 } as const;
    return (await this.#send(call)).state;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.onclose = resolve);
    this.#socket.close();
    await closed;
  }

  async #ask(method: Call["method"], request: LockRequest, nodeIndex: number): Promise<void> {
    const { keys, value, ttlMs } = request;
    const { outcome, message } = (await this.#send({ method, keys, value, ttlMs })).answer!;
    if (outcome === "granted") request.grant(nodeIndex);
    else if (outcome === "denied") request.deny(nodeIndex);
    else request.fail(nodeIndex, new Error(message));
  }

  #send(call: Omit<Call, "id">): Promise<Result> {
    return new Promise((resolve) => {
      const id = this.#waiting.push(resolve) - 1;
      this.#socket.send(JSON.stringify({ id, ...call }));
    });
  }
}
