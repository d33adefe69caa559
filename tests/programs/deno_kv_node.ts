/**
 * The manual's node on Deno KV, for another process to ask. The argument is the path of the
 * database.
 */
/// <reference lib="deno.unstable" />
import { denoKvNode } from "../examples/deno_kv_node.ts";
import { serveNode } from "../support/remote_node.ts";

// Both processes have one clock.
await serveNode(denoKvNode(await Deno.openKv(Deno.args[0]), 0));
