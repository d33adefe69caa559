import { assertEquals } from "@std/assert";
import { formatTable } from "../../../src/cli/table.ts";
import { fittingLines, jsonLine, masked, paintColours } from "../../../src/cli/terminal.ts";
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
const RED = LINES.map((line) => paintColours("red", line));
const WIDE = LINES.map(() => "日本日本"); // eight columns; a row of five has room for two of them

for (
  const [rows, columns, lines, shown] of [
    [24, 80, LINES, 4],
    [5, 80, LINES, 4],
    [4, 80, LINES, 2],
    [5, 4, LINES, 2],
    [2, 80, LINES, 0],
    [1, 80, LINES, 0],
    [5, 8, RED, 4],
    [5, 8, WIDE, 4],
    [9, 5, WIDE, 4],
    [8, 5, WIDE, 3],
    [4, 3, ["日本日", "a"], 0],
  ] as const
) {
  Deno.test(`fittingLines() shows ${shown} lines as ${lines[0]} in ${rows} rows of ${columns} columns`, () => {
    const left = lines.length - shown;
    const rest = left > 0 ? [`… ${left} more: the terminal is too small`] : [];
    assertEquals(fittingLines(lines, rows, columns), [...lines.slice(0, shown), ...rest]);
  });
}

Deno.test("formatTable() counts columns of a terminal", () => {
  const rows = [["key", "state"], ["日本", "free"], ["a", "free"]];
  assertEquals(formatTable(rows), ["key   state", "日本  free", "a     free"]);
});
