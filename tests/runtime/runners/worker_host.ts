/**
 * Runs a bundled Worker in workerd, in Node with Miniflare, and passes requests on to it.
 *
 * Arguments: where Miniflare's module is, the bundle, and as JSON the bindings and further options
 * of Miniflare. Each line of the standard input is a request as JSON: `method`, `path`, `body`, and
 * `times`, how often it is sent at once. For each the bodies of the responses are written, as a
 * JSON array of `{ status, body }` on one line. At the end of the input the host ends.
 */

import { dirname } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

interface Forwarded {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly times?: number;
}

/** The part of Miniflare that is used. */
interface Miniflare {
  dispatchFetch(url: string, init: { method: string; body?: string }): Promise<Response>;
  dispose(): Promise<void>;
}

const [module, scriptPath, bindings, platform] = process.argv.slice(2) as [
  ...[string, string, string, string],
];
const { Miniflare } = await import(module) as { Miniflare: new (options: object) => Miniflare };
const miniflare = new Miniflare({
  modules: true,
  modulesRoot: dirname(scriptPath),
  scriptPath,
  compatibilityDate: "2025-05-01",
  bindings: JSON.parse(bindings),
  ...JSON.parse(platform),
});
// workerd is a process of its own: it would outlive a host that just dies.
process.once("SIGTERM", () => miniflare.dispose().finally(() => process.exit(1)));
try {
  for await (const line of createInterface(process.stdin)) {
    const { method, path, body, times = 1 }: Forwarded = JSON.parse(line);
    const responses = await Promise.all(Array.from({ length: times }, async () => {
      const response = await miniflare.dispatchFetch(`http://worker${path}`, { method, body });
      return { status: response.status, body: await response.text() };
    }));
    console.log(JSON.stringify(responses));
  }
} finally {
  await miniflare.dispose();
}
