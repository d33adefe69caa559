import { assertEquals, assertThrows } from "@std/assert";
import {
  formatHealthReport,
  type HealthReport,
  type NodeHealth,
} from "../../../src/operate/report.ts";

const HEALTHY: NodeHealth = {
  name: "redis://a:6379",
  reachable: true,
  roundTripMs: 0.44,
  clockOffsetMs: -0.2,
  version: "7.0.15",
  role: "master",
  uptimeMs: 5 * 86_400_000,
  aofEnabled: true,
  appendfsync: "always",
  maxmemoryPolicy: "noeviction",
};

function report(nodes: NodeHealth[], findings: HealthReport["findings"] = []): HealthReport {
  return { ok: true, quorum: 2, nodes, findings };
}

Deno.test("formatHealthReport() writes a table of the nodes, and what to do", () => {
  const nodes: NodeHealth[] = [
    HEALTHY,
    { name: "redis://b:6379/15", reachable: false, error: "no answer within 50 ms" },
    { name: "redis://c:6379", reachable: true, refused: { INFO: "NOPERM" } },
  ];
  const findings = [{
    code: "NODE_UNREACHABLE",
    severity: "warning",
    nodes: ["redis://b:6379/15"],
    message: "1 of 3 nodes cannot be asked",
    advice: "See to it",
  }] as const;
  assertEquals(formatHealthReport(report(nodes, findings)).split("\n"), [
    "2 of 3 nodes answered, 2 are a quorum",
    "",
    "node               round trip  version  role    up for  clock     AOF     when full",
    "redis://a:6379     0.4 ms      7.0.15   master  5 d     0 ± 1 ms  always  noeviction",
    "redis://b:6379/15  unavailable",
    "redis://c:6379     ?           ?        ?       ?       ?         ?       ?",
    "",
    "warning NODE_UNREACHABLE: 1 of 3 nodes cannot be asked",
    "  See to it",
  ]);
});

Deno.test("formatHealthReport() refuses a report that nobody has awaited", () => {
  const { message } = assertThrows(() => formatHealthReport(Promise.resolve() as never), TypeError);
  const rule = "'report' must be what check() resolves to";
  assertEquals(message, `Cannot format report as ${rule}: current type is 'Promise'`);
});

Deno.test("formatHealthReport() says so where nothing was found", () => {
  assertEquals(formatHealthReport(report([HEALTHY])).split("\n").at(-1), "no problems found");
});

for (
  const [change, column, text] of [
    [{ uptimeMs: 0 }, 4, "0 s"],
    [{ uptimeMs: 119_999 }, 4, "119 s"],
    [{ uptimeMs: 120_000 }, 4, "2 min"],
    [{ uptimeMs: 7_200_000 }, 4, "2 h"],
    [{ uptimeMs: 172_799_000 }, 4, "47 h"],
    [{ uptimeMs: 172_800_000 }, 4, "2 d"],
    [{ clockOffsetMs: 1_234.5, roundTripMs: 5 }, 5, "+1235 ± 3 ms"],
    [{ clockOffsetMs: -70, roundTripMs: undefined }, 5, "-70 ± 0 ms"],
    [{ reachable: false, error: "refused" }, 1, "unavailable"],
    [{ aofEnabled: false }, 6, "off"],
    [{ appendfsync: undefined }, 6, "?"],
    [{ aofEnabled: undefined }, 6, "?"],
    [{ clustered: true }, 3, "cluster, master"],
    [{ role: "replica" }, 3, "replica"],
    [{ serverName: "valkey", version: "8.1.8" }, 2, "valkey 8.1.8"],
  ] as const
) {
  Deno.test(`formatHealthReport() writes ${Deno.inspect(change)} as ${text}`, () => {
    const node = { ...HEALTHY, ...change };
    const row = formatHealthReport(report([node])).split("\n")[3];
    assertEquals(row.split(/ {2,}/u)[column], text);
  });
}

Deno.test("formatHealthReport() has no text forge lines or escapes", () => {
  const forged = "x\r\nwarning NODES_FEW: forged\u001b[1A\u202e";
  const plain = "x\\u{d}\\u{a}warning NODES_FEW: forged\\u{1b}[1A\\u{202e}";
  const names = ["name", "version", "serverName", "appendfsync", "maxmemoryPolicy", "role"];
  const node = { ...HEALTHY, ...Object.fromEntries(names.map((name) => [name, forged])) };
  const texts = { message: forged, advice: forged };
  const finding = { code: "MAY_EVICT", severity: "warning", nodes: [], ...texts } as const;
  const lines = formatHealthReport(report([node], [finding])).split("\n");
  const version = `${plain} ${plain}`;
  const cells = [plain, "0.4 ms", version, plain, "5 d", "0 ± 1 ms", plain, plain];
  assertEquals(lines[3].split(/ {2,}/u), cells);
  assertEquals(lines.slice(4), ["", `warning MAY_EVICT: ${plain}`, `  ${plain}`]);
});

Deno.test("formatHealthReport() bounds the length of its lines", () => {
  const long = "x".repeat(100_000);
  const finding = { code: long, severity: "info", nodes: [], message: "", advice: long };
  const findings = [finding] as unknown as HealthReport["findings"];
  const down = { name: long, reachable: false };
  const text = formatHealthReport(report([{ ...HEALTHY, version: long }, down], findings));
  assertEquals(text.split("\n").map(({ length }) => length < 10_000), Array(8).fill(true));
});
