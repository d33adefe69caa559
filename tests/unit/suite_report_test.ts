import { assertEquals } from "@std/assert";
import { formatReport, parseReport, type TestResult } from "../../scripts/suite/report.ts";

const WRITTEN_BY_DENO = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="3" failures="1" errors="0" time="0.010">
    <testsuite name="./tests/some_test.ts" tests="3" disabled="1" errors="0" failures="1">
        <testcase name="passes &amp; prints &lt;failure" classname="./tests/some_test.ts" time="0.001" line="1" col="6">
        </testcase>
        <testcase name="acquire() &quot;x&quot;" classname="./tests/some_test.ts" time="0.003" line="2" col="6">
            <failure message="Uncaught Error: &lt;skipped/&gt;">Error: x</failure>
        </testcase>
        <testcase name="is left out" classname="./tests/some_test.ts" time="0.000" line="3" col="6">
            <skipped/>
        </testcase>
        <testcase name="does not match the filter" classname="./tests/some_test.ts" line="4" col="6">
            <skipped/>
        </testcase>
    </testsuite>
</testsuites>`;

Deno.test("parseReport() reads what deno test writes", () => {
  assertEquals(parseReport(WRITTEN_BY_DENO), [
    { place: "./tests/some_test.ts:1", name: "passes & prints <failure", outcome: "passed" },
    { place: "./tests/some_test.ts:2", name: 'acquire() "x"', outcome: "failed" },
    { place: "./tests/some_test.ts:3", name: "is left out", outcome: "skipped" },
  ]);
});

Deno.test("parseReport() finds no test in the report of a run that broke off", () => {
  assertEquals(parseReport(""), []);
});

Deno.test("formatReport() writes what parseReport() reads", () => {
  const results: TestResult[] = [
    { place: "Node 22", name: `a "lock" & <its> 'value' &amp;`, outcome: "passed" },
    { place: "Bun", name: "close() settles", outcome: "failed" },
    { place: "workerd", name: "the whole suite", outcome: "skipped" },
  ];
  assertEquals(parseReport(formatReport(results)), results);
});
