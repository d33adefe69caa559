/**
 * `hasp release`: takes a lock away from its holder.
 *
 * @module
 */
import { forceRelease } from "../operate/mod.ts";
import { LOCK_HELD, SUCCESS } from "./exit_codes.ts";
import { holderText, shownName, warnOfPattern } from "./inspect_command.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { printErrorMasked, printMasked } from "./terminal.ts";

/** The options of `release`. */
export interface ReleaseOptions extends NodeOptions {
  /** Whose lock it is. */
  readonly holder: string;
}

/** Releases a lock if that holder has it, and returns the exit code. */
export async function release(resource: string, options: ReleaseOptions): Promise<number> {
  warnOfPattern(resource);
  await using client = await openClient(options);
  const { redlock, keyPrefix } = client;
  const { holder } = options;
  const name = shownName(keyPrefix + resource);
  if (await forceRelease(redlock, resource, { holder })) {
    printMasked(`${name}: released, ${holder} no longer holds it`);
    return SUCCESS;
  }
  const inspection = await redlock.inspect(resource);
  if (inspection.held) {
    const other = holderText(inspection);
    printErrorMasked(`hasp: Cannot release ${name}: ${other} holds it, not ${holder}`);
    return LOCK_HELD;
  }
  printMasked(`${name}: free, nobody holds this key`);
  return SUCCESS;
}
