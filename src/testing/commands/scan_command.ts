/**
 * The command SCAN.
 *
 * It goes through the keys in the order of a hash, and a cursor is the hash to go on with. So keys
 * that come and go in between change nothing for the others. Servers have another order, and other
 * cursors.
 *
 * @module
 */
import type { CommandContext, CommandTable } from "./command.ts";
import { globOf } from "./glob.ts";
import { parseInteger } from "./integers.ts";
import { CommandError, type Reply } from "../server/replies.ts";

/** The command. */
export const SCAN_COMMANDS: CommandTable = { scan: { arity: -2, run: scan } };

/** How many keys one call looks at by default. */
const COUNT = 10;
/** The two numbers of FNV-1a with 32 bits. */
const FNV_OFFSET = 0x811c9dc5, FNV_PRIME = 0x01000193;

function scan({ keys }: CommandContext, [cursor, ...options]: readonly string[]): Reply {
  if (!/^\d{1,19}$/u.test(cursor)) throw new CommandError("ERR invalid cursor");
  let count = COUNT;
  let pattern = /^/u;
  let type: string | undefined;
  for (let index = 0; index < options.length; index += 2) {
    const [name, value] = [options[index].toUpperCase(), options[index + 1]];
    if (!["COUNT", "MATCH", "TYPE"].includes(name) || value === undefined) throw syntaxError();
    if (name === "MATCH") pattern = globOf(value);
    if (name === "TYPE") type = value.toLowerCase();
    if (name === "COUNT") {
      count = Number(parseInteger(value));
      if (count < 1) throw syntaxError();
    }
  }
  const left = keys.names().map((key) => ({ key, hash: hashOf(key) }))
    .filter(({ hash }) => hash >= Number(cursor)).sort((a, b) => a.hash - b.hash);
  // Keys with one hash go out together, because a cursor cannot stand between them.
  const end = left.findIndex(({ hash }, index) => index >= count && hash > left[index - 1].hash);
  const next = end === -1 ? 0 : left[end].hash;
  const found = left.slice(0, end === -1 ? left.length : end).map(({ key }) => key)
    .filter((key) => pattern.test(key) && (type === undefined || keys.type(key) === type));
  return [String(next), found];
}

function hashOf(key: string): number {
  let hash = FNV_OFFSET;
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), FNV_PRIME);
  }
  return hash >>> 0;
}

function syntaxError(): CommandError {
  return new CommandError("ERR syntax error");
}
