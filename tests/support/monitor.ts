/**
 * Counts the commands that clients send to a server. `INFO commandstats` counts what scripts call
 * too; `MONITOR` prints who sent each command, and marks those of scripts.
 */

import { logIn, type QueryAddress } from "./query.ts";

/**
 * A monitored server, which costs it a large part of its speed. Made by {@linkcode startMonitor}.
 */
export class CommandMonitor implements AsyncDisposable {
  readonly #conn: Deno.TcpConn;
  readonly #server: MonitoredServer;
  readonly #counts = new Map<string, number>();
  readonly #reading: Promise<void>;
  #mark = "";
  #marked = (): void => {};

  /** Reads what `MONITOR` prints on `conn`; tests call {@linkcode startMonitor} instead. */
  constructor(server: MonitoredServer, conn: Deno.TcpConn) {
    this.#server = server;
    this.#conn = conn;
    this.#reading = this.#read();
  }

  /** How often clients have sent each command since the last call, names in lower case. */
  async take(): Promise<Record<string, number>> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#mark = crypto.randomUUID();
    this.#marked = resolve;
    await this.#server.command("ECHO", this.#mark);
    await promise;
    const counts = Object.fromEntries(this.#counts);
    this.#counts.clear();
    return counts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#conn.close();
    await this.#reading.catch(() => {}); // the connection is closed while it is read
  }

  async #read(): Promise<void> {
    let unread = "";
    for await (const text of this.#conn.readable.pipeThrough(new TextDecoderStream())) {
      const lines = (unread + text).split("\r\n");
      unread = lines.pop()!;
      lines.forEach((line) => this.#count(line));
    }
  }

  #count(line: string): void {
    // +1700000000.123456 [0 127.0.0.1:50000] "SET" "key" …; scripts stand as [0 lua].
    const [, sender, name] = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]+)"/u.exec(line) ?? [];
    if (name === undefined || sender === "lua") return;
    if (line.includes(this.#mark) && this.#mark !== "") return this.#marked();
    const key = name.toLowerCase();
    if (key === "auth") return; // of the connections that send the marks
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }
}

/** What a monitor needs of a server. */
interface MonitoredServer {
  readonly admin: QueryAddress;
  command(...args: string[]): Promise<unknown>;
}

/** Monitors a server until the monitor is disposed of; resolves when the first command counts. */
export async function startMonitor(server: MonitoredServer): Promise<CommandMonitor> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: server.admin.port });
  await logIn(conn, server.admin);
  await conn.write(new TextEncoder().encode("MONITOR\r\n"));
  const monitor = new CommandMonitor(server, conn);
  await monitor.take();
  return monitor;
}

/**
 * How often clients send each command to each of some servers while `act` runs, names in lower
 * case.
 */
export async function commandsSentTo(
  servers: readonly MonitoredServer[],
  act: () => Promise<unknown>,
): Promise<Record<string, number>[]> {
  await using stack = new AsyncDisposableStack();
  const monitors = await Promise.all(servers.map(startMonitor));
  for (const monitor of monitors) stack.use(monitor);
  await act();
  return await Promise.all(monitors.map((monitor) => monitor.take()));
}
