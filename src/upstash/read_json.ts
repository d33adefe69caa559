/**
 * The JSON of a response.
 *
 * @module
 */

/**
 * The most bytes of a response: as many as a connection takes for one reply. Replies to the commands of locks have less
 * than a kilobyte, and a pipeline has some hundreds of them.
 */
const RESPONSE_BYTES_MAX = 1_048_576;

/**
 * The JSON of a response. A database answers a command that fails with 4xx and JSON; everything else comes from a gateway
 * that gave up, so the command may have been executed.
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
