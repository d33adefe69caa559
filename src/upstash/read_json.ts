/**
 * Requests to a database, and the JSON of the responses.
 *
 * @module
 */

/**
 * The most bytes of a response: as many as a connection takes for one reply. Replies to the
 * commands of locks have less than a kilobyte, and a pipeline has some hundreds of them.
 */
const RESPONSE_BYTES_MAX = 1_048_576;

/** Workers from before November 2024 refuse `cache`. */
const UNCACHED = "cache" in Request.prototype ? { cache: "no-store" } as const : {};

/** Node says only "fetch failed", and why in the cause: with several addresses, by its code. */
function fetchError(error: Error): Error {
  const { message, code } = (error?.cause ?? {}) as { message?: string; code?: string };
  const why = message || code;
  return why ? new Error(`${error.message}: ${why}`, { cause: error }) : error;
}

/**
 * Sends a request. It is sent nowhere else: a redirect could lead the values of locks to another
 * server, and in some runtimes the token, too. The response comes from no cache: Next keeps even
 * those to `POST`.
 *
 * @throws {Error} If the response is a redirect.
 */
export async function request(url: URL, init: RequestInit): Promise<Response> {
  const sent = fetch(url, { ...init, ...UNCACHED, redirect: "manual" });
  const response = await sent.catch((error) => Promise.reject(fetchError(error)));
  const { status, type, body } = response;
  // A browser hides the status.
  if (type !== "opaqueredirect" && (status < 300 || status > 399)) return response;
  await body?.cancel();
  throw new Error(`HTTP ${status || "3xx"}: a redirect, which is not followed`);
}

/**
 * The JSON of a response. A database answers a command that fails with 4xx and JSON; everything
 * else comes from a gateway that gave up, so the command may have been executed.
 *
 * @throws {Error} If it is not JSON, or too long.
 */
export async function readJson(response: Response): Promise<unknown> {
  const text = await readText(response);
  try {
    if (response.status < 500 && /^[[{]/u.test(text)) return JSON.parse(text);
  } catch {
    // Its message might show a part of a reply.
  }
  throw new Error(`HTTP ${response.status}${response.ok ? " without JSON" : ""}`);
}

async function readText({ body, status }: Response): Promise<string> {
  if (!body) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > RESPONSE_BYTES_MAX) {
      await reader.cancel();
      throw new Error(`HTTP ${status} with more than ${RESPONSE_BYTES_MAX} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
