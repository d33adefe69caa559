/**
 * The commands about the server: TIME, INFO, CONFIG GET, FLUSHALL.
 *
 * INFO has the fields that lock libraries and clients read, and CONFIG GET the settings that decide
 * whether a key may be lost.
 *
 * @module
 */
import { checkSync, type CommandContext, type CommandTable, type ServerState } from "./command.ts";
import { Fields, OK, type Reply, Verbatim } from "../server/replies.ts";

/** The version of the server that is imitated. */
export const VERSION = "7.0.15";
/** The settings of CONFIG GET, with their defaults. */
const SETTINGS: ReadonlyMap<string, string> = new Map([
  ["maxmemory-policy", "noeviction"],
  ["appendonly", "no"],
  ["appendfsync", "everysec"],
]);
const ALL_SECTIONS = ["all", "default", "everything"];

/** The commands. */
export const SERVER_COMMANDS: CommandTable = {
  time: { arity: 1, run: time },
  info: { arity: -1, run: info },
  config: { arity: -2 },
  "config|get": { arity: -3, notInScripts: true, run: configGet },
  flushall: { arity: -1, writes: true, run: flushAll },
};

function time({ server }: CommandContext): Reply {
  const nowUs = Math.floor(server.clock.wallMs() * 1000);
  return [String(Math.floor(nowUs / 1_000_000)), String(nowUs % 1_000_000)];
}

function info({ server }: CommandContext, names: readonly string[]): Reply {
  const wanted = names.map((name) => name.toLowerCase());
  const all = wanted.length === 0 || wanted.some((name) => ALL_SECTIONS.includes(name));
  const sections = Object.entries(infoSections(server))
    .filter(([name]) => all || wanted.includes(name.toLowerCase()))
    .map(([name, lines]) => `# ${name}\r\n${lines.map((line) => `${line}\r\n`).join("")}`);
  return new Verbatim(sections.join("\r\n"));
}

function infoSections(server: ServerState): Record<string, string[]> {
  const { clock, runId, startedAtMs, isFull } = server;
  const uptimeS = Math.max(0, Math.floor((clock.wallMs() - startedAtMs) / 1000));
  return {
    Server: [
      `redis_version:${VERSION}`,
      "redis_mode:standalone",
      `run_id:${runId}`,
      `server_time_usec:${Math.floor(clock.wallMs() * 1000)}`,
      `uptime_in_seconds:${uptimeS}`,
      `uptime_in_days:${Math.floor(uptimeS / 86_400)}`,
    ],
    Memory: [
      `maxmemory:${isFull ? 1 : 0}`,
      `maxmemory_policy:${SETTINGS.get("maxmemory-policy")}`,
    ],
    Persistence: ["loading:0", "aof_enabled:0"],
    Replication: ["role:master", "connected_slaves:0"],
    Cluster: ["cluster_enabled:0"],
  };
}

/** Replies each known setting once, under the name in the request. */
function configGet(_context: CommandContext, names: readonly string[]): Reply {
  const found = new Map<string, string>();
  for (const name of names) {
    const setting = name.toLowerCase();
    if (SETTINGS.has(setting) && !found.has(setting)) found.set(setting, name);
  }
  return new Fields([...found].map(([setting, name]) => [name, SETTINGS.get(setting)!]));
}

function flushAll({ server }: CommandContext, args: readonly string[]): Reply {
  checkSync(args, "ERR syntax error");
  for (const keys of server.databases) keys.clear();
  return OK;
}
