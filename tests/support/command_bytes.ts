/** Commands as bytes, for servers in memory. */

import { bytesOf, encodeCommand } from "../../src/redis/encoder.ts";

/** One command as a client sends it. */
export function commandBytes(args: readonly (string | Uint8Array)[]): Uint8Array {
  return bytesOf(encodeCommand(args));
}
