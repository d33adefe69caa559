/** The page on the command line: its commands run, and its tables and its program agree. */

import { assert, assertEquals, assertGreater } from "@std/assert";
import { createRedlock, type Inspection } from "../../mod.ts";
import * as codes from "../../src/cli/exit_codes.ts";
import { createProgram } from "../../src/cli/program.ts";
import { eventText } from "../../src/cli/run/run_log.ts";
import { formatInspected } from "../../src/cli/inspect_command.ts";
import { paintNothing } from "../../src/cli/terminal.ts";
import { Changes } from "../../src/cli/watch_command.ts";
import { DENO_PERMISSIONS, SOURCE_EDITION } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { plainCommand } from "../support/plain_command.ts";
import { type ServerGroup, startServers } from "../support/servers.ts";
import { codeMarked, FENCES, fencesMarked, PAGES, ROOT, tablesOf } from "./pages.ts";

const PAGE = "docs/command-line.md";
const RUN_WITHIN_MS = 60_000;
/** The second of an acquisition, in base 36. */
const SECOND = "t9wbk1";

const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
const program = createProgram(() => {});

/** The rows of the page's table with this first column. */
function rowsOf(column: string): readonly (readonly string[])[] {
  const [{ rows }] = tablesOf(column).filter(({ page }) => page === PAGE);
  return rows;
}

function unquoted(cell: string): string {
  return cell.replaceAll("`", "");
}

Deno.test("docs: the command line is installed from this package, with the permissions that it needs", () => {
  const lines = codeMarked("cli-install").trim().split("\n");
  assertEquals(lines.length, 4);
  for (const line of lines) assert(line.includes(config.name), line);
  for (const line of lines.filter((it) => it.startsWith("deno "))) {
    assertEquals(line.match(/--allow-\S+/gu), DENO_PERMISSIONS);
    assert(line.includes(`jsr:${config.name}/cli`) && "./cli" in config.exports, line);
  }
});

Deno.test("docs: the commands for Kubernetes have options that hasp has", () => {
  const run = program.commands.find((command) => command.name() === "run")!;
  const known = run.options.map(({ long }) => long);
  const commands = fencesMarked("kubernetes")
    .map(({ code }) => /"exec hasp run ([^"]*)"/u.exec(code)![1].split(" "));
  assertEquals(commands.length, 2);
  for (const args of commands) {
    const options = args.slice(0, args.indexOf("--")).filter((arg) => arg.startsWith("--"));
    assertEquals(options.filter((option) => !known.includes(option)), []);
  }
});

Deno.test("docs: the commands of the command line do what they are shown for", async () => {
  await using place = await makePlace();
  for (const { code } of fencesMarked("hasp")) {
    await place.freeAll(); // the commands before may have kept something locked by --at-least
    await place.run(code, { HASP_NODES: place.nodes });
  }
  const ran = (await Deno.readTextFile(`${place.folder}/ran`)).replace(/gpu:[01]/u, "any gpu");
  assertEquals(ran.trim().split("\n"), [
    "./backup.sh nightly-backup", // in the README
    "./backup.sh nightly-backup",
    "./close_month.sh invoices ledger",
    "./train.sh any gpu",
    "./import.sh import",
    "./import.sh import", // with --events
  ]);
});

/** What a command prints about itself. */
function helpOf(command: ReturnType<typeof createProgram>): string {
  let help = "";
  command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
  return help;
}

Deno.test("docs: no line of the command line's help has more than 100 columns", () => {
  for (const command of [program, ...program.commands]) {
    const long = helpOf(command).split("\n").filter((line) => line.length > 100);
    assertEquals(long, [], command.name());
  }
});

Deno.test("docs: every example that skips a held lock makes one attempt, so that no machine waits and then runs too", () => {
  const run = program.commands.find((command) => command.name() === "run")!;
  const examples = [helpOf(run), ...FENCES.map(({ code }) => code)].join("\n").split("\n")
    .filter((line) => line.includes("--on-held skip"));
  assertEquals(examples.length, 6);
  assertEquals(examples.filter((line) => !line.includes("--wait 0")), []);
});

Deno.test("docs: the lines for cron and systemd run, with the nodes from a file and a credential", async () => {
  await using place = await makePlace();
  const nodes = `${place.folder}/hasp-nodes`;
  await Deno.writeTextFile(nodes, place.nodes.replaceAll(" ", "\n"));
  const crontab = codeMarked("crontab");
  const [, variable] = /^(\w+)=\/etc\/hasp\/nodes$/mu.exec(crontab)!;
  const [, job] = /^0 3 \* \* \* {2}(.*)$/mu.exec(crontab)!;
  await place.run(job, { [variable]: nodes });
  await place.freeAll();
  const unit = codeMarked("systemd");
  const [, credential] = /^LoadCredential=([\w-]+):/mu.exec(unit)!;
  assertEquals(nodes, `${place.folder}/${credential}`);
  const [, start] = /^ExecStart=(.*)$/mu.exec(unit)!;
  await place.run(start, { CREDENTIALS_DIRECTORY: place.folder });
  assertEquals(
    (await Deno.readTextFile(`${place.folder}/ran`)).trim(),
    "./backup.sh nightly-backup\n./backup.sh nightly-backup",
  );
});

Deno.test("docs: what hasp inspect and hasp list are shown to print is what they print", async () => {
  await using place = await makePlace();
  await using _ = await holdInvoice(place, 2);
  const env = { HASP_NODES: place.nodes };
  const inspected = await place.run("hasp inspect invoice:42 nightly-backup", env);
  assertEquals(comparable(inspected), comparable(codeMarked("inspect")));
  const residue = `${"f".repeat(40)}:${SECOND}:web-7:99`;
  await place.servers[0].command("SET", "invoice:7", residue, "PX", "60000");
  const listed = await place.run("hasp list", env);
  assertEquals(comparable(listed, "sorted"), comparable(codeMarked("list"), "sorted"));
});

Deno.test("docs: what hasp is shown to print while a stuck lock is freed is what it prints", async () => {
  await using place = await makePlace();
  await using invoice = await holdInvoice(place, 7);
  const shown = codeMarked("stuck");
  const [digits] = shown.match(/[0-9a-f]{8}/u)!;
  let printed = "";
  for (const [, command] of shown.matchAll(/^\$ (.*)$/gmu)) {
    const code = `${command.replace(digits, invoice.digits)} 2>&1 || test $? = ${codes.LOCK_HELD}`;
    printed += `$ ${command}\n${await place.run(code, { HASP_NODES: place.nodes })}`;
    if (command.startsWith("hasp release")) await invoice.next;
  }
  assertEquals(comparable(printed.replaceAll(invoice.digits, digits)), comparable(shown));
});

/**
 * Lines without what differs each time: of holders is left which of them are the same, and of times
 * that there is one.
 */
function comparable(text: string, order?: "sorted"): string[] {
  const lines = text.trimEnd().split("\n");
  if (order) lines.sort();
  const holders: string[] = [];
  return lines.map((line) =>
    line.replaceAll(/\b[0-9a-f]{8}\b/gu, (digits) => {
      if (!holders.includes(digits)) holders.push(digits);
      return `holder ${holders.indexOf(digits)}`;
    }).replaceAll(/\d+\.\d s/gu, "# s").replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/gu, "#")
  );
}

/** Has web-3 hold a lock of the pages, and others wait for it, of which web-7 is the next. */
async function holdInvoice({ servers }: { servers: ServerGroup }, waiters: number) {
  const stack = new AsyncDisposableStack();
  const acquire = (label: string) =>
    stack.use(createRedlock(servers.urls, { label, ttlMs: 60_000, waitMs: Infinity }))
      .acquire("invoice:42");
  const { holder } = await acquire("web-3:1234");
  const calls = [];
  for (const label of ["web-7:99", ...Array(waiters - 1).fill("web-8:1")]) {
    calls.push(acquire(label));
    await eventually(async () => {
      const queues = servers.map((server) => server.command("ZCARD", "hasp:queue:invoice:42"));
      assertEquals(await Promise.all(queues), queues.map(() => calls.length));
    });
  }
  for (const call of calls) call.catch(() => {}); // the end of the test closes their clients
  return {
    /** Identify the holder. */
    digits: holder,
    /** Resolves when the next one has the lock. */
    next: calls[0],
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

Deno.test("docs: what hasp run --verbose is shown to say is what it says", () => {
  const shown = codeMarked("verbose");
  const resources = ["backup"];
  const vote = { node: "", outcome: "granted", elapsedMs: 1 } as const;
  const lines = [
    {
      type: "acquired",
      resources,
      holder: "7c1f09be",
      votes: [vote, vote, vote],
      attempts: 1,
      elapsedMs: 4,
      remainingMs: 29_700,
    },
    { type: "ended", code: 0, elapsedMs: 61 },
    { type: "skipped", resources, holder: "e05b11a4 web-7:99" },
  ] as const;
  assertEquals(shown.trimEnd().split("\n"), lines.map(eventText));
});

Deno.test("docs: what hasp watch is shown to print is what it prints", () => {
  const [table, lines] = fencesMarked("watch").map(({ code }) => code.trim().split("\n"));
  const votes = [1, 2, 3].map((port) => (
    { node: `redis://a:${port}`, outcome: "held", elapsedMs: 1 } as const
  ));
  const acquiredAt = new Date(2026, 1, 3, 4, 4, 54);
  const holderOf = (holder: string, label: string) => [{ holder, label, acquiredAt }];
  const free = {
    mode: undefined,
    holders: [],
    remainingMs: 0,
    waiters: 0,
    foreign: undefined,
    votes,
  };
  const held = {
    ...free,
    held: true,
    mode: "exclusive",
    holders: holderOf("7c1f09be", "web-3:1234"),
    remainingMs: 27_400,
    waiters: 2,
  } as const;
  const changes = new Changes();
  const look = (state: Inspection) => {
    return changes.update([{ resource: "invoice:42", key: "invoice:42", state }])[0][0];
  };
  const said = [
    look(held),
    look({ ...held, holders: holderOf("e05b11a4", "web-7:99"), waiters: 1 }),
    look({ ...free, held: false }),
  ];
  assertEquals(lines.map((line) => line.slice("2026-02-03 04:05:06  ".length)), said);
  const inspected = [{ resource: "invoice:42", key: "invoice:42", state: held }];
  assertEquals(table.slice(1, 3), formatInspected(inspected, paintNothing));
});

Deno.test("docs: the table of commands names every command", () => {
  const names = rowsOf("command").map(([name]) => unquoted(name).replace("hasp ", ""));
  assertEquals(names, program.commands.map((command) => command.name()));
});

Deno.test("docs: the table of flags names every flag of hasp run, with its default", () => {
  const run = program.commands.find((command) => command.name() === "run")!;
  const own = run.options.filter(({ helpGroupHeading }) => helpGroupHeading !== "Nodes:");
  assertEquals(
    rowsOf("flag").map(([flag]) => unquoted(flag)),
    own.map(({ flags }) => flags),
  );
  for (const [index, [flag, standard]] of rowsOf("flag").entries()) {
    const { description, defaultValueDescription, defaultValue, negate } = own[index];
    const [, described] = /\(default: (.*)\)$/u.exec(description) ?? [];
    const shown = negate ? "–" : described ?? defaultValueDescription ?? defaultValue ?? "–";
    assertEquals(standard === "off" ? "–" : standard, String(shown), flag);
  }
});

Deno.test("docs: the options of the nodes are all named", () => {
  const { text } = PAGES.find(({ path }) => path === PAGE)!;
  const [check] = program.commands.filter((command) => command.name() === "check");
  const shared = check.options.filter(({ helpGroupHeading }) => helpGroupHeading === "Nodes:");
  assertGreater(shared.length, 5);
  for (const { long, envVar } of shared) {
    assert(text.includes(`\`${long}`), long ?? "");
    if (envVar) assert(text.includes(envVar), envVar);
  }
});

Deno.test("docs: the table of exit codes has every code", () => {
  const { UsageError: _, exitCodeOf: _of, errorLine: _line, SIGNAL_BASE, ...numbers } = codes;
  assertEquals(
    rowsOf("exit code").map(([code]) => code),
    [...Object.values(numbers).sort((a, b) => a - b).map(String), `${SIGNAL_BASE} + n`],
  );
});

/**
 * A folder with the scripts of the page, which note that they ran, `hasp` on the path, and three
 * nodes.
 */
async function makePlace() {
  const servers = await startServers(3);
  const folder = await Deno.makeTempDir({ prefix: "hasp-" });
  const write = async (name: string, text: string) => {
    await Deno.writeTextFile(`${folder}/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  };
  for (const name of ["backup.sh", "close_month.sh", "import.sh", "train.sh"]) {
    await write(name, `echo "$0" $HASP_RESOURCE >>ran`);
  }
  await write("hasp", `exec ${SOURCE_EDITION.map((word) => `'${word}'`).join(" ")} "$@"`);
  return {
    folder,
    servers,
    nodes: servers.urls.join(" "),
    /** Deletes all keys of the servers. */
    freeAll: () => Promise.all(servers.map((server) => server.command("FLUSHALL"))),
    /** Runs lines of shell, and returns what they print. */
    async run(code: string, env: Record<string, string>): Promise<string> {
      const { success, stdout, stderr } = await plainCommand("sh", {
        args: ["-e", "-c", code],
        cwd: folder,
        env: { PATH: `${folder}:${Deno.env.get("PATH")}`, ...env },
        signal: AbortSignal.timeout(RUN_WITHIN_MS),
      }).output();
      assert(success, new TextDecoder().decode(stderr));
      return new TextDecoder().decode(stdout);
    },
    async [Symbol.asyncDispose]() {
      await servers[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
