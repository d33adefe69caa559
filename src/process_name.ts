/**
 * What this process is called, where the runtime says so without asking for a permission and
 * without an import.
 *
 * @module
 */

/** What runtimes know of the process and its machine. */
export interface Globals {
  readonly Deno?: {
    readonly pid: number;
    hostname(): string;
    readonly permissions: {
      querySync(descriptor: { name: "sys"; kind: "hostname" }): { readonly state: string };
    };
  };
  readonly navigator?: { readonly userAgent?: string };
  readonly process?: {
    readonly pid: number;
    getBuiltinModule?(name: "os"): { hostname(): string } | undefined;
  };
}

/** Longest name, in characters. */
const LENGTH_MAX = 64;

let known: string | undefined;

/**
 * The machine and the process, as `web-3:1234`: at most 64 printable ASCII characters without
 * spaces. Empty in workers and browsers, in Deno without the permission to read the host's name,
 * and in Node before 20.16.
 */
export function processName(): string {
  return known ??= nameIn(globalThis as Globals);
}

/** The name of the process with these globals. */
export function nameIn(globals: Globals): string {
  const { Deno: deno, navigator } = globals;
  try {
    if (deno) {
      const { state } = deno.permissions.querySync({ name: "sys", kind: "hostname" });
      return state === "granted" ? nameOf(deno.hostname(), deno.pid) : "";
    }
    // its emulation of Node makes a name up
    if (navigator?.userAgent === "Cloudflare-Workers") return "";
    const { process } = globals; // last, because in Deno it loads what emulates Node
    return nameOf(process!.getBuiltinModule!("os")!.hostname(), process!.pid);
  } catch {
    return ""; // a name is not worth a failure
  }
}

/** The name of a process on a host. */
export function nameOf(host: string, pid: number): string {
  return host.replaceAll(/[^!-~]/gu, "?").slice(0, LENGTH_MAX - 1 - `${pid}`.length) + `:${pid}`;
}
