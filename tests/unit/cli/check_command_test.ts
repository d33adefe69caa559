import { assertEquals, assertMatch } from "@std/assert";
import { colourReport } from "../../../src/cli/check_command.ts";
import { formatHealthReport, type HealthReport } from "../../../src/operate/mod.ts";

const REPORT: HealthReport = {
  ok: false,
  quorum: 2,
  nodes: [{ name: "redis://a:1", reachable: false }],
  findings: [
    {
      code: "NO_QUORUM",
      severity: "error",
      nodes: [],
      message: "error FAKE: down",
      advice: "Add some.",
    },
    { code: "NODES_FEW", severity: "warning", nodes: [], message: "Few.", advice: "Add." },
    { code: "INFO_REFUSED", severity: "info", nodes: [], message: "No INFO.", advice: "Allow." },
  ],
};

Deno.test("colourReport() puts the headings and the severities into colours, and no server's text", () => {
  const paint = (style: string, text: string) => `<${style} ${text}>`;
  const painted = colourReport(formatHealthReport(REPORT), paint).split("\n");
  assertEquals(painted.filter((line) => line.startsWith("<")), [
    "<bold 0 of 1 node answered>, 2 are a quorum",
    painted[2],
    "<red error NO_QUORUM:> error FAKE: down",
    "<yellow warning NODES_FEW:> Few.",
    "<blue info INFO_REFUSED:> No INFO.",
  ]);
  assertEquals(painted[2].startsWith("<dim node "), true);
  const ok = { ...REPORT, findings: [] };
  assertMatch(colourReport(formatHealthReport(ok), paint), /^<green no problems found>$/m);
});
