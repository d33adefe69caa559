import { assertEquals } from "@std/assert";
import { fittingLines, jsonLine, masked } from "../../../src/cli/terminal.ts";
import { listFiles } from "../../support/source_code.ts";

for (
  const [text, expected] of [
    ["unknown option '--nodes=redis://:pw@h'", "unknown option '--nodes=redis://***@h'"],
    ["redis://u:p@ss@h:1/2 and rediss://v:q@i", "redis://***@h:1/2 and rediss://***@i"],
    ["HASP=redis://u:p@a,redis://v:q@b", "HASP=redis://***@b"],
    ["open 'redis://:my p@ss@h' failed", "open 'redis://***@h' failed"],
    ["redis://h:1 is down, ask ops@example.com", "redis://h:1 is down, ask ops@example.com"],
    ["redis://a\nname@example.com'", "redis://a\nname@example.com'"],
    ["user@example.com", "user@example.com"],
    ["write redis://[user[:password]@]host", "write redis://[user[:password]@]host"],
    ["redis://[user[:pw]@]host", "redis://***@]host"],
  ]
) {
  Deno.test(`masked() makes ${JSON.stringify(expected)}`, () =>
    assertEquals(masked(text), expected));
}

Deno.test("jsonLine() masks every text but the names of resources that are no node addresses", () => {
  const [name, address] = ["https://x/joe@example.com", "redis://:pw@h"];
  const hidden = "redis://***@h";
  const value = (shown: string) => {
    return [{ resource: name, key: shown, resources: [name, shown], nodes: [{ message: shown }] }];
  };
  assertEquals(JSON.parse(jsonLine(value(address))), value(hidden));
});

Deno.test("only the module of the terminal writes to a stream, so that all credentials are masked", async () => {
  const writing = [];
  for (const path of listFiles("src/cli", /\.ts$/u)) {
    const text = await Deno.readTextFile(path);
    if (/std(out|err)\.write|console\.|createLogUpdate\(/u.test(text)) writing.push(path);
  }
  assertEquals(writing, ["src/cli/terminal.ts"]);
});

const LINES = ["heading", "one", "two", "three"];

for (
  const [rows, columns, expected] of [
    [24, 80, LINES],
    [5, 80, LINES],
    [4, 80, ["heading", "one", "… 2 more: the terminal is too small"]],
    [5, 4, ["heading", "one", "… 2 more: the terminal is too small"]],
    [2, 80, ["… 4 more: the terminal is too small"]],
    [1, 80, ["… 4 more: the terminal is too small"]],
  ] as const
) {
  Deno.test(`fittingLines() fits four lines into ${rows} rows of ${columns} columns`, () => {
    assertEquals(fittingLines(LINES, rows, columns), [...expected]);
  });
}

Deno.test("fittingLines() counts no colour as a column", () => {
  const painted = LINES.map((line) => `\x1b[31m${line}\x1b[0m`);
  assertEquals(fittingLines(painted, 5, 8), painted);
});
