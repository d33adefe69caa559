/** A headless Chromium, driven by its DevTools protocol, to see pages as readers do. */

import { isInstalled } from "../support/plain_command.ts";
import { startProgram } from "../runtime/processes.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** How often a condition is looked at, in milliseconds. */
const LOOK_EVERY_MS = 50;

/** How long a condition may take to come true, in milliseconds: long enough for a busy machine. */
const LOOK_WITHIN_MS = 30_000;

/** One tab. */
export interface Tab {
  /** Shows an address in a window of this width, in pixels. */
  open(address: string, width: number): Promise<void>;
  /** The value of an expression in the page. */
  read<T>(expression: string): Promise<T>;
  /** Resolves when an expression in the page is true. */
  until(expression: string): Promise<void>;
  /** A picture of the window, in PNG. */
  picture(): Promise<Uint8Array<ArrayBuffer>>;
}

/** A running browser with one tab. */
export interface Browser extends AsyncDisposable {
  readonly tab: Tab;
}

/** The name of an installed Chromium, or `undefined` if there is none. */
export async function findBrowser(): Promise<string | undefined> {
  for (const name of NAMES) {
    if (await isInstalled(name)) return name;
  }
  return undefined;
}

/** Starts a browser. */
export async function startBrowser(name: string): Promise<Browser> {
  const profile = await Deno.makeTempDir({ prefix: "hasp-browser-" });
  const program = startProgram(name, [
    ...["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
    ...["--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"],
  ], { heard: "stderr" });
  let address: string | undefined;
  while (address === undefined) {
    address = (await program.nextLine()).match(/^DevTools listening on (ws:\S+)$/u)?.[1];
  }
  const socket = new WebSocket(address);
  const send = await connect(socket);
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  return {
    tab: new SocketTab((method, params) => send(method, params, String(sessionId))),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
      await send("Browser.close");
      await closed;
      await program[Symbol.asyncDispose]();
      await Deno.remove(profile, { recursive: true });
    },
  };
}

type Reply = Record<string, unknown>;
type Send = (method: string, params?: object, sessionId?: string) => Promise<Reply>;

async function connect(socket: WebSocket): Promise<Send> {
  const pending = new Map<number, PromiseWithResolvers<Reply>>();
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    if (error) pending.get(id)?.reject(new Error(error.message));
    else pending.get(id)?.resolve(result);
    pending.delete(id);
  });
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  let id = 0;
  return (method, params = {}, sessionId) => {
    const reply = Promise.withResolvers<Reply>();
    pending.set(++id, reply);
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return reply.promise;
  };
}

class SocketTab implements Tab {
  readonly #send: (method: string, params?: object) => Promise<Reply>;

  constructor(send: (method: string, params?: object) => Promise<Reply>) {
    this.#send = send;
  }

  async open(address: string, width: number): Promise<void> {
    await this.#send("Emulation.setDeviceMetricsOverride", {
      ...{ width, height: 900, deviceScaleFactor: 1, mobile: width < 600 },
    });
    await this.#send("Page.navigate", { url: address });
    await this.until(`location.href === ${JSON.stringify(address)} &&
      document.readyState === "complete"`);
  }

  async read<T>(expression: string): Promise<T> {
    const reply = await this.#send("Runtime.evaluate", {
      ...{ expression, returnByValue: true, awaitPromise: true },
    });
    if (reply.exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(reply)}`);
    return (reply.result as { value: T }).value;
  }

  async until(expression: string): Promise<void> {
    const endMs = Date.now() + LOOK_WITHIN_MS;
    while (!await this.read<boolean>(`Boolean(${expression})`)) {
      if (Date.now() > endMs) throw new Error(`It did not become true that ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async picture(): Promise<Uint8Array<ArrayBuffer>> {
    const { data } = await this.#send("Page.captureScreenshot");
    return Uint8Array.fromBase64(String(data));
  }
}
