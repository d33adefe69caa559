/**
 * What most users do, step by step, in whatever runtime runs this: prints one JSON object of what came of it.
 *
 * @module
 */
import process from "node:process";
import {
  createRedlock,
  type Lock,
  LockHeldError,
  QuorumError,
  RedlockError,
  type Vote,
} from "../../../mod.ts";
import { connect } from "../../../src/redis/mod.ts";

/** What the test has prepared. */
interface Setting {
  /** Nodes that are well. */
  readonly urls: string[];
  /** Three nodes, the last of which is stopped with its port open. */
  readonly hungUrls: string[];
  /** A server that speaks TLS, the authority it is signed by, and another. */
  readonly tlsUrl: string;
  readonly caCert: string;
  readonly strangerCert: string;
  /** A Unix socket, where the program may open one. */
  readonly unixUrl?: string;
}

const setting: Setting = JSON.parse(process.argv[2]!);
const redlock = createRedlock(setting.urls, { ttlMs: 10_000, retryDelayMs: 10 });
const other = createRedlock(setting.urls, { ttlMs: 10_000, retryDelayMs: 10, waitMs: 0 });

const nameOf = (error: unknown) => error instanceof RedlockError ? error.code : String(error);
const grants = (votes: readonly Vote[]) =>
  votes.filter(({ outcome }) => outcome === "granted").length;
const isLock = (lock: Lock | undefined) => lock !== undefined;

async function acquiring() {
  const lock = await redlock.acquire("acquired");
  const { held, value, votes, extensions } = lock;
  const remainingMs = lock.remainingMs();
  return {
    held,
    valid: remainingMs > 5_000 && remainingMs <= 10_000 - 102,
    digits: /^[0-9a-f]{40}$/.test(value),
    quorum: grants(votes) >= 2,
    extensions,
    released: await lock.release(),
    heldAfter: lock.held,
  };
}

async function contending() {
  const lock = await redlock.acquire("contended");
  const denied = await other.tryAcquire("contended");
  const error = await other.acquire("contended").catch((error) => error);
  const waiting = other.acquire("contended", { waitMs: 8_000 });
  await lock.release();
  const handedOver = await waiting;
  await handedOver.release();
  return {
    denied: denied === undefined,
    error: error instanceof LockHeldError && error.code,
    handedOver: handedOver.value !== lock.value,
  };
}

async function extending() {
  const lock = await redlock.acquire("extended", { ttlMs: 5_000 });
  await lock.extend({ ttlMs: 20_000 });
  const result = { longer: lock.remainingMs() > 10_000, extensions: lock.extensions };
  await lock.release();
  return result;
}

async function autoExtending() {
  return await redlock.using("auto-extended", { ttlMs: 3_000 }, async (lock) => {
    while (lock.held && lock.extensions === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { held: lock.held, extended: lock.extensions > 0, aborted: lock.signal.aborted };
  });
}

async function aborting() {
  const lock = await redlock.acquire("aborted");
  const controller = new AbortController();
  const waiting = other.acquire("aborted", { waitMs: Infinity, signal: controller.signal });
  controller.abort("enough");
  const reason = await waiting.catch((reason) => reason);
  await lock.release();
  return { reason };
}

async function lockingSeveral() {
  const lock = await redlock.acquire(["first", "second"]);
  const deniedOne = await other.tryAcquire("second");
  const deniedBoth = await other.tryAcquire(["second", "third"]);
  const third = await other.tryAcquire("third");
  await third?.release();
  await lock.extend();
  const released = await lock.release();
  const again = await other.tryAcquire(["second", "first"]);
  await again?.release();
  return {
    denied: !isLock(deniedOne) && !isLock(deniedBoth),
    third: isLock(third),
    released,
    again: isLock(again),
  };
}

async function withoutOneNode() {
  const hung = createRedlock(setting.hungUrls, { ttlMs: 10_000, connectTimeoutMs: 300 });
  const lock = await hung.acquire("hung");
  const result = { held: lock.held, granted: grants(lock.votes), released: await lock.release() };
  const tooFew = createRedlock([setting.hungUrls[2]!], { nodeTimeoutMs: 100, waitMs: 0 });
  const error = await tooFew.acquire("hung").catch((error) => error);
  await Promise.all([hung.close(), tooFew.close()]);
  return { ...result, alone: error instanceof QuorumError && error.code };
}

async function losing() {
  const lock = await redlock.acquire("lost", { ttlMs: 300 });
  const alive = setInterval(() => {}, 60_000);
  await new Promise<void>((resolve) => {
    lock.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  clearInterval(alive);
  const { held } = lock;
  const released = await lock.release().then(() => "settled");
  return { code: nameOf(lock.signal.reason), held, released };
}

async function disposing() {
  const syntax = await import("./await_using.ts").catch(() => undefined);
  let held: boolean;
  if (syntax) {
    held = await syntax.holdInBlock(redlock, "block");
  } else {
    const lock = await redlock.acquire("block");
    held = lock.held;
    await lock[Symbol.asyncDispose]();
  }
  const { held: heldAfter } = await redlock.inspect("block");
  return { bySyntax: syntax !== undefined, held, heldAfter };
}

async function reachingOverTls() {
  const tls = { caCerts: [setting.caCert] };
  const client = await connect(setting.tlsUrl, { tls });
  const echo = await client.send(["ECHO", "über TLS ".repeat(10_000)]);
  await client.close();
  const refused = await connect(setting.tlsUrl, { tls: { caCerts: [setting.strangerCert] } })
    .then(() => "let in", (error) => error.name);
  return { length: String(echo).length, refused };
}

async function reachingOverSocket() {
  if (setting.unixUrl === undefined) return "not tried";
  const client = await connect(setting.unixUrl);
  const echo = await client.sendRaw(["ECHO", new Uint8Array([0, 13, 10, 255])]);
  await client.close();
  return [...echo as Uint8Array];
}

async function closing() {
  const lock = await redlock.acquire("closed", { autoExtend: true });
  const waiting = other.acquire("closed", { waitMs: Infinity }).catch(nameOf);
  await Promise.all([redlock.close(), other.close()]);
  const after = await redlock.acquire("closed").catch(nameOf);
  return { held: lock.held, waiting: await waiting, after };
}

console.log(JSON.stringify({
  acquiring: await acquiring(),
  contending: await contending(),
  extending: await extending(),
  autoExtending: await autoExtending(),
  aborting: await aborting(),
  lockingSeveral: await lockingSeveral(),
  withoutOneNode: await withoutOneNode(),
  losing: await losing(),
  disposing: await disposing(),
  reachingOverTls: await reachingOverTls(),
  reachingOverSocket: await reachingOverSocket(),
  closing: await closing(),
}));
