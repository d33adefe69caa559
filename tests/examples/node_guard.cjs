/**
 * An HTTP server in CommonJS: one request per path at a time, 409 for the others.
 *
 * @module
 */

const { createRedlock } = require("@hasp/redlock");
const { createServer } = require("node:http");
const { setTimeout } = require("node:timers/promises");

const redlock = createRedlock(process.env.HASP_NODES, { waitMs: 0 });
const STATUSES = { LOCK_HELD: 409, NO_QUORUM: 503, LOCK_LOST: 500, CLOSED: 503 };

/** Stands for the work; it stops when the lock is lost, and not when the client has gone. */
async function pay(signal) {
  await setTimeout(200, undefined, { signal });
  return "paid\n";
}

const server = createServer(async (request, response) => {
  // `new URL` throws for some; in a router of Express, `url` lacks the path of the router
  const [path] = (request.originalUrl ?? request.url).split("?");
  try {
    response.end(await redlock.using(path, ({ signal }) => pay(signal)));
  } catch (error) {
    console.error(error); // the message names servers and holders: not for the client
    response.writeHead(STATUSES[error.code] ?? 500).end();
  }
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${server.address().port}`);
});
