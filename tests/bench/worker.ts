/**
 * The process of one contender: takes requests as lines of JSON on its standard input, one at a
 * time, and answers each with one line. Runs in Deno, Node and Bun.
 */

import process from "node:process";
import { createInterface } from "node:readline";
import { type Contender, contenders } from "./contenders/contender.ts";
import { type Figures, measures } from "./measures.ts";

/** What the bench asks of a worker. */
export type WorkerRequest =
  | { do: "open"; contender: string; urls: string[] }
  | { do: "close" }
  | { do: "measure"; measure: string; params: Figures };

/** What a worker answers. */
export type WorkerAnswer = { figures: Figures } | { error: string };

let contender: Contender | undefined;

async function answer(request: WorkerRequest): Promise<Figures> {
  switch (request.do) {
    case "open":
      contender = await contenders[request.contender]!();
      await contender.open(request.urls);
      return {};
    case "close":
      await contender?.close();
      contender = undefined;
      return {};
    case "measure":
      return await measures[request.measure]!(contender!, request.params);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply: WorkerAnswer = await answer(JSON.parse(line)).then(
    (figures) => ({ figures }),
    (error) => ({ error: String(error) }),
  );
  process.stdout.write(JSON.stringify(reply) + "\n");
}
process.exit(0);
