/**
 * The same job in a Node program: `node upstash_node.js nightly-report`.
 *
 * @module
 */

import process from "node:process";
import worker from "./upstash_worker.ts";

const [name] = process.argv.slice(2);
const { DATABASES, STORE_URL } = process.env as Record<string, string>;
const request = new Request(`http://localhost/jobs/${name}`, { method: "POST" });
const response = await worker.fetch(request, { DATABASES: DATABASES!, STORE_URL: STORE_URL! });
console.log(response.status);
