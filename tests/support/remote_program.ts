/**
 * A program that serves a node (`serveNode` of `remote_node.ts`), and the node as a test reaches it.
 *
 * @module
 */
import { startProgram } from "./programs.ts";
import { RemoteNode } from "./remote_node.ts";

/**
 * Starts a program of `tests/programs` that serves a node, and connects to it.
 *
 * @param file The program.
 * @param path Its argument: where the store is.
 * @param flags Further flags for Deno.
 */
export async function startRemoteNode(file: string, path: string, ...flags: string[]) {
  const rights = ["--allow-read", "--allow-write"];
  const program = startProgram(file, [path], { flags: [...rights, ...flags] });
  const close = () => program[Symbol.asyncDispose]();
  try {
    return { node: await RemoteNode.connect(await program.line(/^ws:/)), close };
  } catch (error) {
    await close();
    throw error;
  }
}
