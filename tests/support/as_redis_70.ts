/** Tests that compare the servers in memory with real ones. */
import { serverVersion } from "./servers.ts";

const ignore = !(await serverVersion()).startsWith("Redis server v=7.0.");

/** Registers a test that only Redis 7.0 passes, whose bytes the servers in memory answer. */
export function testAsRedis70(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore, fn });
}
