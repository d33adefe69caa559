/**
 * A node in another process: what it is asked there, and what it answers, are lines of JSON.
 * `remote_program.ts` is the test's end of it.
 */
import { createInterface } from "node:readline";
import process from "node:process";
import type { Grant, KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";

/** What the other process is to do. */
export type Call =
  | { readonly method: "acquire" | "extend" | "release"; readonly asked: LockRequest }
  | { readonly method: "inspect"; readonly asked: string };

/** What it did. */
export interface Result {
  readonly value?: Grant | KeyState | undefined;
  readonly error?: string;
}

/**
 * Does what the lines of the input say, each when it comes, and answers with the number of the
 * line.
 */
export async function serveNode(node: LockNode): Promise<void> {
  let id = 0;
  for await (const line of createInterface({ input: process.stdin })) void answer(node, line, id++);
}

async function answer(node: LockNode, line: string, id: number): Promise<void> {
  const call: Call = JSON.parse(line);
  const asked: Promise<Result["value"]> = call.method === "inspect"
    ? node.inspect(call.asked)
    : node[call.method](call.asked);
  const result: Result = await asked.then(
    (value) => ({ value }),
    (error) => ({ error: String(error) }),
  );
  console.log(`${id} ${JSON.stringify(result)}`);
}
