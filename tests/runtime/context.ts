/** What the suite is told about the world it runs in. */

/** The library, however it came into the runtime: as source, or as the npm package. */
export interface Library {
  readonly main: typeof import("../../mod.ts");
  readonly operate: typeof import("../../src/operate/mod.ts");
  readonly redis: typeof import("../../src/redis/mod.ts");
  readonly testing: typeof import("../../src/testing/mod.ts");
}

/** What not every runtime has. */
export type Feature = "unix sockets" | "authorities" | "an end of stuck writes";

/** Servers and what is to be expected of the runtime; sent as JSON. */
export interface Context {
  /** Five healthy servers. */
  readonly urls: readonly string[];
  /** Two servers that were stopped with their sockets open. */
  readonly hungUrls: readonly string[];
  /** Three addresses where nobody listens. */
  readonly deadUrls: readonly string[];
  /** Three servers that the suite may silence for a while. */
  readonly silentUrls: readonly string[];
  /** One server over TLS, with a certificate for its address. */
  readonly tlsUrl: string;
  /** One server over TLS, with a certificate for the name `redis.test` only. */
  readonly namedTlsUrl: string;
  /**
   * A TLS server with a host name, which answers each command with the name that its client asked
   * for.
   */
  readonly sniUrl: string;
  /** The authority that signed all certificates, in PEM. */
  readonly authority: string;
  /** One server's Unix domain socket. */
  readonly unixUrl: string;
  /** Stands before every resource, so that no two runs meet. */
  readonly prefix: string;
  /** What the runtime does not have; each such case expects a clear error in its place. */
  readonly lacks: readonly Feature[];
}

/** Takes a case in, to run it in its turn. */
export type Register = (name: string, run: () => Promise<void>) => void;

/** What became of one case. */
export interface Outcome {
  readonly name: string;
  readonly tookMs: number;
  /** Why it failed; left out where it passed. */
  readonly error?: string;
}

/** How long one case may take, in milliseconds. */
const CASE_WITHIN_MS = 60_000;

/** Runs what `define` registers, one case after the other, and tells what became of each. */
export async function runCases(
  define: (register: Register) => void,
  tell: (outcome: Outcome) => void,
): Promise<void> {
  const cases: [name: string, run: () => Promise<void>][] = [];
  define((name, run) => cases.push([name, run]));
  for (const [name, run] of cases) {
    const startMs = Date.now();
    let error: string | undefined;
    try {
      await inTime(run());
    } catch (caught) {
      error = caught instanceof Error ? caught.stack ?? caught.message : String(caught);
    }
    tell({ name, tookMs: Date.now() - startMs, error });
  }
}

async function inTime(running: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`the case took longer than ${CASE_WITHIN_MS} ms`);
    timer = setTimeout(() => reject(error), CASE_WITHIN_MS);
  });
  try {
    await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}
