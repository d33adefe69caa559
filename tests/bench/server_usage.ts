/** What the servers spent: CPU time, and the time of single commands. */

import type { RedisServer } from "../support/servers.ts";
import type { Figures } from "./measures.ts";

/** Commands whose time is read. */
const TIMED = ["set", "evalsha"] as const;

/**
 * What all servers together have spent since their start, in microseconds, and how many calls they
 * served.
 */
export async function serverUsage(servers: readonly RedisServer[]): Promise<Figures> {
  const total: Figures = { cpuUs: 0 };
  for (const name of TIMED) total[`${name}Us`] = total[`${name}Calls`] = 0;
  const texts = await Promise.all(
    servers.map(async (server) => [
      String(await server.command("INFO", "cpu")),
      String(await server.command("INFO", "commandstats")),
    ]),
  );
  for (const [cpu = "", stats = ""] of texts) {
    for (const [, seconds] of cpu.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gmu)) {
      total.cpuUs! += Number(seconds) * 1e6;
    }
    for (const name of TIMED) {
      const [, calls, us] =
        new RegExp(`^cmdstat_${name}:calls=(\\d+),usec=(\\d+)`, "mu").exec(stats) ?? [];
      total[`${name}Calls`]! += Number(calls ?? 0);
      total[`${name}Us`]! += Number(us ?? 0);
    }
  }
  return total;
}

/**
 * What the servers spent between two looks: CPU per pair, and the time of one call of each command;
 * NaN without calls.
 */
export function usageSince(before: Figures, after: Figures, pairs: number): Figures {
  const spent = (figure: string) => after[figure]! - before[figure]!;
  return {
    serverCpuUs: spent("cpuUs") / pairs,
    ...Object.fromEntries(
      TIMED.map((name) => [`${name}Us`, spent(`${name}Us`) / spent(`${name}Calls`)]),
    ),
  };
}
