/** Asks for a lock without the permission to connect, and prints what comes of it. */
import { createRedlock } from "../../mod.ts";

const redlock = createRedlock(["redis://127.0.0.1:6379"], { onEvent() {} });
const error = await redlock.acquire("report", { waitMs: 600_000 }).catch((error) => error);
console.log(error.message);
await redlock.close();
