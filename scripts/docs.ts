/**
 * Makes the site of the manual and the API, and looks for broken links in it.
 *
 * @module
 */

import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildSite } from "./docs/build.ts";
import { checkLinks } from "./docs/links.ts";
import { serveSite } from "./docs/serve.ts";
import { CACHE } from "./package/tools.ts";

const HELP = `Usage: deno task docs [options]

  --out <folder>   where the site goes (.cache/site)
  --base <path>    the path below which it will be served (/)
  --serve          serve it on the loopback interface until interrupted
  --help           show this text`;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    out: { type: "string", default: join(CACHE, "site") },
    base: { type: "string", default: "/" },
    serve: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

if (values.help) console.log(HELP);
else {
  const out = resolve(values.out);
  const base = `/${values.base}/`.replaceAll(/\/+/gu, "/");
  await buildSite(out, base);
  const { followed, broken } = await checkLinks(out, base);
  for (const link of broken) console.error(`Broken link on ${link}`);
  console.log(`${out}: ${followed} links, ${broken.length} of them broken`);
  if (broken.length > 0) Deno.exitCode = 1;
  else if (values.serve) console.log(`Listening on ${serveSite(out, base).address}`);
}
