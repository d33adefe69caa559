/**
 * Uses the lock in one way and then has nothing left to do: when does the process end? For every
 * runtime.
 */
import process from "node:process";
import { createRedlock, RedlockError } from "../../mod.ts";

const [way = "", ...urls] = process.argv.slice(2);

// Whatever is left behind would keep the process for 20 seconds or longer.
const redlock = createRedlock(urls, {
  ttlMs: 60_000,
  nodeTimeoutMs: 20_000,
  clientName: "exit",
  onEvent: () => {}, // locks are lost on purpose, and standard error must stay empty
});

const code = (error: unknown) => error instanceof RedlockError ? error.code : error;

const ways: Record<string, () => Promise<void>> = {
  async using() {
    await redlock.using("job", () => console.log("working"));
  },
  async leading() {
    const options = { ttlMs: 1_000, nodeTimeoutMs: 100, extensionsMax: 1 };
    await redlock.using("job", options, async ({ signal }) => {
      console.log("leading");
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }).catch((error) => console.log(code(error)));
  },
  async idle() {
    const lock = await redlock.acquire("job");
    await lock.release();
  },
  async holding() {
    await redlock.acquire("job", { autoExtend: true });
  },
  // deno-lint-ignore require-await
  async waiting() {
    redlock.acquire("job", { waitMs: 400 }).catch((error) => console.log(code(error)));
  },
  // deno-lint-ignore require-await
  async unanswered() {
    redlock.acquire("job", { waitMs: 0, nodeTimeoutMs: 400 })
      .catch((error) => console.log(code(error)));
  },
  async losing() {
    const lock = await redlock.acquire("job", {
      ttlMs: 1_000,
      nodeTimeoutMs: 100,
      autoExtend: true,
    });
    console.log("held");
    const alive = setInterval(() => {}, 60_000);
    await new Promise<void>((resolve) => {
      lock.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    clearInterval(alive);
    console.log(code(lock.signal.reason), lock.held, await lock.release().catch(code));
  },
};

await ways[way]!();
console.log("end of program");
