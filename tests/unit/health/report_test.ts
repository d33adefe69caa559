import { assertEquals } from "@std/assert";
import {
  formatHealthReport,
  type HealthReport,
  type NodeHealth,
} from "../../../src/health/report.ts";

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

/** The cells of the only node. */
function cells(change: Partial<NodeHealth>): string[] {
  return formatHealthReport(report([{ ...HEALTHY, ...change }])).split("\n")[3].split(/ {2,}/u);
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
    "redis://b:6379/15  no answer within 50 ms",
    "redis://c:6379     ?           ?        ?       ?       ?         ?       ?",
    "",
    "warning NODE_UNREACHABLE: 1 of 3 nodes cannot be asked",
    "  See to it",
  ]);
});

Deno.test("formatHealthReport() says so where nothing was found", () => {
  assertEquals(formatHealthReport(report([HEALTHY])).split("\n").at(-1), "no problems found");
});

for (
  const [ms, text] of [
    [0, "0 s"],
    [119_999, "119 s"],
    [120_000, "2 min"],
    [7_200_000, "2 h"],
    [172_799_000, "47 h"],
    [172_800_000, "2 d"],
  ] as const
) {
  Deno.test(`formatHealthReport() writes an uptime of ${ms} ms as ${text}`, () => {
    assertEquals(cells({ uptimeMs: ms })[4], text);
  });
}

for (
  const [change, column, text] of [
    [{ clockOffsetMs: 1_234.5, roundTripMs: 5 }, 5, "+1235 ± 3 ms"],
    [{ clockOffsetMs: -70, roundTripMs: 0 }, 5, "-70 ± 0 ms"],
    [{ aofEnabled: false }, 6, "off"],
    [{ appendfsync: undefined }, 6, "?"],
    [{ aofEnabled: undefined }, 6, "?"],
    [{ clustered: true }, 3, "cluster, master"],
    [{ role: "replica" }, 3, "replica"],
    [{ serverName: "valkey", version: "8.1.8" }, 2, "valkey 8.1.8"],
  ] as const
) {
  Deno.test(`formatHealthReport() writes ${Deno.inspect(change)} as ${text}`, () => {
    assertEquals(cells(change)[column], text);
  });
}

Deno.test("formatHealthReport() has no text forge lines or escapes", () => {
  const forged = "x\r\nwarning NODES_FEW: forged\u001b[1A\u202e";
  const plain = "x\\u{d}\\u{a}warning NODES_FEW: forged\\u{1b}[1A\\u{202e}";
  const node: NodeHealth = {
    ...HEALTHY,
    name: forged,
    version: forged,
    serverName: forged,
    appendfsync: forged,
    maxmemoryPolicy: forged,
    role: forged as NodeHealth["role"],
  };
  const down: NodeHealth = { name: "down", reachable: false, error: forged };
  const finding = {
    code: "MAY_EVICT",
    severity: "warning",
    nodes: [],
    message: forged,
    advice: forged,
  } as const;
  const lines = formatHealthReport(report([node, down], [finding])).split("\n");
  assertEquals(lines[3].split(/ {2,}/u), [
    plain,
    "0.4 ms",
    `${plain} ${plain}`,
    plain,
    "5 d",
    "0 ± 1 ms",
    plain,
    plain,
  ]);
  assertEquals(lines.slice(4), [
    `down${" ".repeat(plain.length - 4)}  ${plain}`,
    "",
    `warning MAY_EVICT: ${plain}`,
    `  ${plain}`,
  ]);
});

Deno.test("formatHealthReport() bounds the length of its lines", () => {
  const long = "x".repeat(100_000);
  const finding = { code: long, severity: "info", nodes: [], message: "", advice: long };
  const findings = [finding] as unknown as HealthReport["findings"];
  const down = { name: long, reachable: false, error: long };
  const text = formatHealthReport(report([{ ...HEALTHY, version: long }, down], findings));
  assertEquals(text.split("\n").map(({ length }) => length < 10_000), Array(8).fill(true));
});
