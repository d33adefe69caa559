/**
 * A node in another process: what it is asked there, and what it answers, goes through a WebSocket.
 *
 * @module
 */
import type { Grant, KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";

/** What the other process is to do. */
type Call =
  & { readonly id: number }
  & (
    | { readonly method: "acquire" | "extend" | "release"; readonly asked: LockRequest }
    | { readonly method: "inspect"; readonly asked: string }
  );

/** What it did. */
interface Result {
  readonly id: number;
  readonly value?: Grant | KeyState | undefined;
  readonly error?: string;
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

async function resultOf(node: LockNode, { method, asked }: Call): Promise<Omit<Result, "id">> {
  try {
    return { value: await node[method](asked as LockRequest & string) };
  } catch (error) {
    return { error: String(error) };
  }
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

  acquire(request: LockRequest): Promise<Grant> {
    return this.#ask("acquire", request) as Promise<Grant>;
  }

  extend(request: LockRequest): Promise<Grant> {
    return this.#ask("extend", request) as Promise<Grant>;
  }

  release(request: LockRequest): Promise<Grant> {
    return this.#ask("release", request) as Promise<Grant>;
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return this.#ask("inspect", key) as Promise<KeyState | undefined>;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.onclose = resolve);
    this.#socket.close();
    await closed;
  }

  #ask(method: Call["method"], asked: Call["asked"]): Promise<Result["value"]> {
    return new Promise((resolve, reject) => {
      const id = this.#waiting.push(({ value, error }) => {
        if (error === undefined) resolve(value);
        else reject(new Error(error));
      }) - 1;
      this.#socket.send(JSON.stringify({ id, method, asked }));
    });
  }
}
