import { assertEquals, assertRejects } from "@std/assert";
import { findAddresses, type ReadFile } from "../../../src/cli/addresses.ts";
import { parseAddress, splitAddresses } from "../../../src/redis/address.ts";
import { UsageError } from "../../../src/cli/exit_codes.ts";

const FILES: Record<string, string> = {
  "/etc/nodes":
    "# three nodes\nredis://:s3cret@a # rack 1, redis://z\nredis://b  \n\n  # the last\r\nredis://c #\r\n",
  "/etc/others": "redis://:a,b c@d",
  "/run/credentials/hasp-nodes": "redis://e,redis://f\n",
  "/etc/empty": "# nothing here\n\n",
};

const readFile: ReadFile = (path) => {
  const text = FILES[path];
  if (text !== undefined) return Promise.resolve(text);
  const code = path === "/etc/shadow" ? "EACCES" : "ENOENT";
  return Promise.reject(Object.assign(new Error(`${code}: cannot open '${path}'`), { code }));
};

/** The host of an address. */
const nameOf = (address: string): string => parseAddress(address).hostname;

/** Every place; each call leaves out those that it wants to come later. */
const OPTIONS = { node: ["redis://g"], nodesFile: "/etc/nodes" };
const ENV = {
  HASP_NODES: "redis://h, redis://i",
  HASP_NODES_FILE: "/etc/others",
  CREDENTIALS_DIRECTORY: "/run/credentials",
};

Deno.test("findAddresses() takes the first place that is given", async () => {
  const { node: _node, ...file } = OPTIONS;
  const { HASP_NODES: _nodes, ...fileAndCredential } = ENV;
  const { CREDENTIALS_DIRECTORY } = ENV;
  const found = await Promise.all([
    findAddresses(OPTIONS, ENV, readFile),
    findAddresses(file, ENV, readFile),
    findAddresses({}, ENV, readFile),
    findAddresses({}, fileAndCredential, readFile),
    findAddresses({}, { CREDENTIALS_DIRECTORY }, readFile),
  ]);
  const names = found.map((addresses) => addresses.flatMap(splitAddresses).map(nameOf));
  assertEquals(names, [["g"], ["a", "b", "c"], ["h", "i"], ["d"], ["e", "f"]]);
});

Deno.test("findAddresses() says where addresses can be given, if none are", async () => {
  const nowhere = [{}, { HASP_NODES: "" }, { CREDENTIALS_DIRECTORY: "/run/others" }];
  for (const env of nowhere) {
    await assertRejects(
      () => findAddresses({}, env, readFile),
      UsageError,
      "Cannot find the addresses of the nodes: set HASP_NODES or HASP_NODES_FILE, or pass --nodes-file or --node",
    );
  }
});

Deno.test("findAddresses() names a file that it cannot use", async () => {
  const cases: [string, string][] = [
    ["/etc/none", "Cannot read the addresses of the nodes from /etc/none: ENOENT"],
    ["/etc/shadow", "Cannot read the addresses of the nodes from /etc/shadow: EACCES"],
    ["/etc/empty", "Cannot find the addresses of the nodes: /etc/empty contains no address"],
  ];
  for (const [nodesFile, message] of cases) {
    await assertRejects(() => findAddresses({ nodesFile }, {}, readFile), UsageError, message);
    await assertRejects(
      () => findAddresses({}, { HASP_NODES_FILE: nodesFile }, readFile),
      UsageError,
      message,
    );
  }
});

Deno.test("findAddresses() does not ignore a credential that it may not read", async () => {
  const env = { CREDENTIALS_DIRECTORY: "/run/credentials" };
  const refuse = () => Promise.reject(Object.assign(new Error("EACCES"), { code: "EACCES" }));
  await assertRejects(
    () => findAddresses({}, env, refuse),
    UsageError,
    "Cannot read the addresses",
  );
});
