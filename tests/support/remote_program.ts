/**
 * A program that serves a node (`serveNode` of `remote_node.ts`), and the node as a test reaches
 * it.
 */
import type { Grant, KeyState, LockNode } from "../../src/quorum/lock_node.ts";
import { type Program, startProgram } from "./programs.ts";
import type { Call, Result } from "./remote_node.ts";

/**
 * Starts a program of `tests/programs` that serves a node.
 *
 * @param file The program.
 * @param path Its argument: where the store is.
 * @param flags Further flags for Deno.
 */
export function startRemoteNode(file: string, path: string, ...flags: string[]) {
  const rights = ["--allow-read", "--allow-write"];
  const program = startProgram(file, [path], { flags: [...rights, ...flags] });
  return { node: remoteNode(program), close: () => program[Symbol.asyncDispose]() };
}

function remoteNode(program: Program): LockNode {
  let count = 0;
  const ask = async (call: Call) => {
    const id = count++;
    await program.write(JSON.stringify(call));
    const line = await program.line(new RegExp(`^${id} `));
    const { value, error }: Result = JSON.parse(line.slice(`${id} `.length));
    if (error !== undefined) throw new Error(error);
    return value;
  };
  return {
    name: "remote",
    acquire: (asked) => ask({ method: "acquire", asked }) as Promise<Grant>,
    extend: (asked) => ask({ method: "extend", asked }) as Promise<Grant>,
    release: (asked) => ask({ method: "release", asked }) as Promise<Grant>,
    inspect: (asked) => ask({ method: "inspect", asked }) as Promise<KeyState | undefined>,
  };
}
