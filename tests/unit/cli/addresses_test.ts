import { assertEquals, assertRejects } from "@std/assert";
import { findNodes, type ReadFile } from "../../../src/cli/addresses.ts";
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
const nameOf = (address: string): string => parseAddress(address).server.replace(/:.*/u, "");

/** Every place; each call leaves out those that it wants to come later. */
const OPTIONS = { node: ["redis://g"], nodesFile: "/etc/nodes" };
const ENV = {
  HASP_NODES: "redis://h, redis://i",
  HASP_NODES_FILE: "/etc/others",
  CREDENTIALS_DIRECTORY: "/run/credentials",
};

Deno.test("findNodes() takes the first place that is given", async () => {
  const { node: _node, ...file } = OPTIONS;
  const { HASP_NODES: _nodes, ...fileAndCredential } = ENV;
  const { CREDENTIALS_DIRECTORY } = ENV;
  const found = await Promise.all([
    findNodes(OPTIONS, ENV, readFile),
    findNodes(file, ENV, readFile),
    findNodes({}, ENV, readFile),
    findNodes({}, fileAndCredential, readFile),
    findNodes({}, { CREDENTIALS_DIRECTORY }, readFile),
  ]);
  const names = found.map(({ addresses }) => addresses.flatMap(splitAddresses).map(nameOf));
  assertEquals(names, [["g"], ["a", "b", "c"], ["h", "i"], ["d"], ["e", "f"]]);
});

Deno.test("findNodes() reads the prefix of keys from a line beside the addresses", async () => {
  const texts: Record<string, readonly [addresses: string[], keyPrefix: string | undefined]> = {
    "redis://a\nkey-prefix app:\nredis://b\n": [["redis://a", "redis://b"], "app:"],
    "\tkey-prefix\tapp:#1  # comment\r\nredis://a": [["redis://a"], "app:#1"],
    "# key-prefix app:\nredis://a": [["redis://a"], undefined],
    "redis://a key-prefix:": [["redis://a", "key-prefix:"], undefined],
  };
  for (const [text, [addresses, keyPrefix]] of Object.entries(texts)) {
    const found = await findNodes({ nodesFile: "nodes" }, {}, () => Promise.resolve(text));
    const split = found.addresses.flatMap((it) => `${it}`.trim().split(/\s+/u));
    assertEquals([split, found.keyPrefix], [addresses, keyPrefix], text);
  }
});

Deno.test("findNodes() says where addresses can be given, if none are", async () => {
  const message =
    "Cannot find the addresses of the nodes: set HASP_NODES or HASP_NODES_FILE, or pass --nodes-file or --node";
  for (const env of [{}, { HASP_NODES: "" }, { CREDENTIALS_DIRECTORY: "/run/others" }]) {
    await assertRejects(() => findNodes({}, env, readFile), UsageError, message);
  }
});

Deno.test("findNodes() names a file that it cannot use", async () => {
  const cases: [string, string][] = [
    ["/etc/none", "Cannot read the addresses of the nodes from /etc/none: ENOENT"],
    ["/etc/shadow", "Cannot read the addresses of the nodes from /etc/shadow: EACCES"],
    ["/etc/empty", "Cannot find the addresses of the nodes: /etc/empty contains no address"],
  ];
  for (const [nodesFile, message] of cases) {
    const env = { HASP_NODES_FILE: nodesFile };
    for (const [options, variables] of [[{ nodesFile }, {}], [{}, env]] as const) {
      await assertRejects(() => findNodes(options, variables, readFile), UsageError, message);
    }
  }
});

Deno.test("findNodes() does not ignore a credential that it may not read", async () => {
  const env = { CREDENTIALS_DIRECTORY: "/run/credentials" };
  const refuse = () => Promise.reject(Object.assign(new Error("EACCES"), { code: "EACCES" }));
  const finding = () => findNodes({}, env, refuse);
  await assertRejects(finding, UsageError, "Cannot read the addresses");
});
