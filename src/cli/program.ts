/**
 * The commands and options of `hasp`, and their help.
 *
 * @module
 */
import { Command, InvalidArgumentError, Option } from "commander";
import { parseDuration, parseLimit } from "./duration.ts";
import { LOCK_HELD, UsageError } from "./exit_codes.ts";
import { TTL_MS_MAX } from "../options.ts";
import type { RunOptions } from "./run/run_command.ts";
import { writeError, writeOut } from "./terminal.ts";
import { VERSION } from "./version.ts";

/** Shortest TTL of `run`, in milliseconds: to start a process, or to end one, takes a while. */
const RUN_TTL_MS_MIN = 1_000;
/** Longest default of the grace period, in milliseconds. */
const GRACE_MS_MAX = 5_000;
/** The default of the grace period is the TTL divided by this, if that is shorter. */
const GRACE_DIVISOR = 4;
/**
 * The longest grace period is the TTL divided by this: extensions need the rest for more than one
 * try.
 */
const GRACE_DIVISOR_MIN = 2;
/** Shortest time between two looks of `watch`, in milliseconds. */
const INTERVAL_MS_MIN = 100;

/** Greatest exit code. */
const EXIT_CODE_MAX = 255;

/** Longest line of the help, in characters. */
const HELP_COLUMNS = 80;

/** Receives the exit code of the command that was chosen. */
export type OnExitCode = (code: number) => void;

/** Describes the command line. Each command is loaded when it is chosen. */
export function createProgram(onExitCode: OnExitCode): Command {
  const program = new Command("hasp")
    .description("Locks that many machines share, for shells, cron jobs and operators.")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
      writeOut,
      writeErr: writeError,
      outputError: (text, write) => {
        const hint = "$& Addresses of nodes go to --node.";
        const many = /too many arguments for '(?:check|list|release)'.*/u; // `demo` takes no --node
        write(text.replace(/^error: /u, "hasp: ").replace(many, hint));
      },
    })
    .addHelpText("after", NODES_HELP + EXIT_CODES_HELP);
  addRun(program, onExitCode);
  addInspect(program, onExitCode);
  addList(program, onExitCode);
  addWatch(program, onExitCode);
  addRelease(program, onExitCode);
  addCheck(program, onExitCode);
  addTimeline(program, onExitCode);
  addDemo(program, onExitCode);
  addHelp(program);
  return program;
}

const NODES_HELP = `
Nodes:
  The addresses of the nodes are taken from the first of these places:
    --node, --nodes-file       options of each command
    HASP_NODES                 addresses, separated by spaces or commas
    HASP_NODES_FILE            the path of a file with an address on each line
    $CREDENTIALS_DIRECTORY     systemd: LoadCredential=hasp-nodes:<path>
  An address is redis://[user[:password]@]host[:port][/db], rediss://… for TLS,
  or redis+unix:///path. Keep passwords out of --node: others can see the
  command line. If your locks have a 'keyPrefix', pass --key-prefix, set
  HASP_KEY_PREFIX, or write a line 'key-prefix app:' beside the addresses.
`;

const EXIT_CODES_HELP = `
Exit codes:
  0      success; 'run' returns its command's code, or 0 with --on-held skip
  1      'check' has found an error, or what its --fail-on names
  120    somebody else holds the lock; for 'run', -E chooses another code
  121    too few nodes answered
  122    the lock was lost while the command ran: it was stopped, or had ended
  125    the command line or the configuration is wrong, or something unexpected
         happened
  126    the command cannot be executed
  127    the command was not found
  128+n  signal n ended the command, or the waiting for the lock
`;

const RUN_HELP = `
hasp extends the lock while the command runs, and releases it when the command
ends. With --at-least, hasp ends with the command too, but the resource stays
locked for the rest of that time. hasp passes signals, input and output through.
The command gets two variables: HASP_RESOURCE, and HASP_FENCING_TOKEN, a number
greater than that of every earlier lock on the resource.

If hasp cannot extend the lock, the command gets SIGTERM, and after the grace
period SIGKILL, before the lock can belong to somebody else. The command also
gets SIGKILL if hasp is killed or stopped. Both signals go to all processes that
the command has started, unless they have left its session; with --foreground
they go to the command alone.

Examples:
  hasp run -r backup --wait 0 --on-held skip --at-least 5s -- ./backup.sh
  hasp run -r invoices -r ledger --wait forever -- psql -f close_month.sql
  hasp run --any -r gpu:0 -r gpu:1 -- sh -c './train.sh "$HASP_RESOURCE"'
  hasp run --shared -r config -- ./report.sh
  hasp run -r deploy --foreground -- bash
`;

function addRun(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("run")
    .summary("run a command while a lock is held")
    .description("Runs a command while a lock is held: flock(1) across machines.")
    .usage("[options] --resource <name> -- <command> [argument...]")
    .argument("<command...>", "the command and its arguments")
    .passThroughOptions()
    .option("-r, --resource <name>", "what to lock; repeat it to lock several", collect)
    .option(
      "--any",
      "lock any one of the resources, whichever is free first; HASP_RESOURCE is its name",
    )
    .addOption(
      new Option(
        "--shared",
        "lock in shared mode: others with --shared may run beside it; the command gets no HASP_FENCING_TOKEN",
      ).conflicts("any"),
    )
    .addOption(duration("-t, --ttl", "how long a crashed machine keeps the lock", "30s"))
    .addOption(
      duration(
        "-w, --wait",
        "longest wait for the lock; 0 waits for nobody, 'forever' has no limit",
        "10s",
      ).argParser(parseLimit),
    )
    .addOption(
      new Option("--on-held <action>", "what to do if the lock is held when the wait is over")
        .choices(["fail", "skip"]).default("fail"),
    )
    .option(
      "-E, --held-exit-code <number>",
      "the exit code of 'fail'",
      parseExitCode,
      LOCK_HELD,
    )
    .addOption(
      duration(
        "--at-least",
        "keep the resource locked this long even if the command ends earlier, for machines with a late clock",
        "0",
      ),
    )
    .addOption(
      duration(
        "--grace",
        "time between SIGTERM and SIGKILL if the lock is lost (default: 5s, or a quarter of a short TTL)",
      ),
    )
    .option("--foreground", "stay in the terminal's foreground, as editors and shells must")
    .option("--label <text>", "who holds the lock, for others to see (default: host and process)")
    .option("-v, --verbose", "say on the standard error what happens to the lock")
    .option("--json", "say it in lines of JSON")
    .option("--events <file>", "append what happens to the lock to a file, for 'hasp timeline'")
    .option("--no-fencing", "run the command without HASP_FENCING_TOKEN")
    .addOption(duration("--restart-guard", "how long a restarted node does not count"));
  withNodes(command).addHelpText("after", RUN_HELP).action(async (words, options) => {
    checkGiven(command, "resource");
    const { run } = await import("./run/run_command.ts");
    const grace = checkTimes(options);
    onExitCode(await run(checkCommand(words), { ...options, grace }));
  });
}

function addInspect(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("inspect")
    .summary("show whether resources are held")
    .description(
      "Shows who holds resources, since when and for how long, and how many wait for them. " +
        "Ends with 121 if too few nodes answered to know it.",
    )
    .argument("<resource...>", "the resources")
    .option("--json", "print JSON");
  withNodes(command).action(async (resources, options) => {
    const { inspect } = await import("./inspect_command.ts");
    onExitCode(await inspect(resources, options));
  });
}

function addList(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("list")
    .summary("list what is held")
    .description(
      "Lists the resources that are held, and residue: keys on fewer than a quorum of the nodes. " +
        "Every node goes through all of its keys, and serves others in between.",
    )
    .argument("[prefix]", "what the resources begin with; all by default", "")
    .option("--json", "print a line of JSON for each resource");
  withNodes(command).action(async (prefix, options) => {
    const { list } = await import("./list_command.ts");
    onExitCode(await list(prefix, options));
  });
}

function addWatch(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("watch")
    .summary("watch who holds resources")
    .description(
      "Watches who holds resources, since when, and how many wait for them, until it gets a signal. " +
        "Without a name it watches all that is locked, as 'hasp list' lists it. " +
        "On a terminal it redraws a table; into a pipe or file it prints a line for each change.",
    )
    .argument("[resource...]", "the resources; all that are locked by default")
    .option("--json", "print a line of JSON for each change")
    .addOption(duration("-i, --interval", "time between two looks; at least 100ms", "1s"));
  withNodes(command).action(async (resources, options) => {
    if (options.interval < INTERVAL_MS_MIN) {
      const is = `${options.interval} ms`;
      throw new UsageError(`Cannot watch with an interval of ${is} as it must be at least 100ms`);
    }
    const { watch } = await import("./watch_command.ts");
    onExitCode(await watch(resources, options));
  });
}

function addRelease(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("release")
    .summary("take a lock away from its holder")
    .description(
      "Deletes the lock on a resource if this holder has it: never the lock of the next one. " +
        "The holder is not stopped, and may believe for a moment that it still has the lock. " +
        "Ends with 0 if nobody holds the resource then, with 120 if somebody else does.",
    )
    .argument("<resource>", "the resource")
    .option("--holder <holder>", "whose lock it is, as 'hasp inspect' shows: 7c1f09be");
  withNodes(command).action(async (resource, options) => {
    checkGiven(command, "holder");
    const { release } = await import("./release_command.ts");
    onExitCode(await release(resource, options));
  });
}

function addCheck(program: Command, onExitCode: OnExitCode): void {
  const command = program.command("check")
    .summary("check the nodes")
    .description(
      "Checks how the nodes are configured, and reports problems with advice. " +
        "Ends with 1 if one of them is at least as severe as --fail-on says.",
    )
    .addOption(duration("-t, --ttl", "the longest TTL of your locks", "30s"))
    .option("--no-fencing", "leave out what only fencing tokens need")
    .addOption(duration("--restart-guard", "how long a restarted node does not count"))
    .addOption(
      new Option("--fail-on <severity>", "the least severe problem that is a failure")
        .choices(["error", "warning", "info"]).default("error"),
    )
    .option("--json", "print JSON");
  withNodes(command).action(async (options) => {
    const { check } = await import("./check_command.ts");
    onExitCode(await check(options));
  });
}

function addTimeline(program: Command, onExitCode: OnExitCode): void {
  program.command("timeline")
    .summary("draw who held what when")
    .description(
      "Prints an HTML page about events: who held what, who waited, and what was lost. Each line of the " +
        "files is an event as JSON, as 'hasp run --events' or an 'onEvent' of yours has written it.",
    )
    .argument("[file...]", "the files, of one process or of many; the standard input by default")
    .option("--title <text>", "what stands above the picture")
    .action(async (files, options) => {
      const { timeline } = await import("./timeline/timeline_command.ts");
      onExitCode(await timeline(files, options));
    });
}

function addDemo(program: Command, onExitCode: OnExitCode): void {
  program.command("demo")
    .summary("see it work, without servers of yours")
    .description(
      "Four workers increment one counter: with the lock, while nodes fail, and without it. " +
        "The nodes are servers in memory.",
    )
    .action(async () => {
      const { demo } = await import("./demo/demo_command.ts");
      onExitCode(await demo());
    });
}

/** Commander's own prints the help of the program in place of that of an unknown command. */
function addHelp(program: Command): void {
  program.command("help")
    .summary("print the help of a command")
    .argument("[command]")
    .action((name?: string) => {
      const named = program.commands.find((command) => command.name() === name);
      if (name && !named) program.error(`error: unknown command '${name}'`);
      (named ?? program).outputHelp();
    });
}

/** Adds the options that say where the nodes are, and how to reach them. */
function withNodes(command: Command): Command {
  const fromVariable = (flags: string, description: string, variable: string) =>
    new Option(flags, description).env(variable);
  return command
    .optionsGroup("Nodes:")
    .option("-n, --node <address>", "the address of a node; repeat it for each node", collect)
    .option("--nodes-file <path>", "a file with the address of a node on each line")
    .addOption(fromVariable("--ca-file <path>", "authorities to trust, in PEM", "HASP_CA_FILE"))
    .addOption(fromVariable("--cert-file <path>", "a client certificate, in PEM", "HASP_CERT_FILE"))
    .addOption(fromVariable("--key-file <path>", "the key of the certificate", "HASP_KEY_FILE"))
    .addOption(fromVariable("--key-prefix <text>", "the prefix of all keys", "HASP_KEY_PREFIX"))
    .addOption(duration("--node-timeout", "longest wait for a node's answer"));
}

/** An option that is a duration, and perhaps its default. */
function duration(flag: string, description: string, standard?: string): Option {
  const option = new Option(`${flag} <duration>`, description).argParser(parseDuration);
  return standard === undefined ? option : option.default(parseDuration(standard), standard);
}

function parseExitCode(text: string): number {
  const code = Number(text);
  if (/^\d+$/u.test(text) && code <= EXIT_CODE_MAX) return code;
  throw new InvalidArgumentError(`It must be an integer from 0 to ${EXIT_CODE_MAX}`);
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

/**
 * Ends if an option is missing. Commander's own check of that comes first, so it would hide that
 * the option is misspelt.
 */
function checkGiven(command: Command, name: string): void {
  if (command.getOptionValue(name) !== undefined) return;
  const { flags } = command.options.find((option) => option.attributeName() === name)!;
  command.error(`error: required option '${flags}' not specified`);
}

/** Returns the grace period. @throws {UsageError} If it, or another time, is out of range. */
function checkTimes(
  { ttl, atLeast, grace = Math.min(GRACE_MS_MAX, ttl / GRACE_DIVISOR) }: RunOptions,
) {
  for (const [what, ms] of [["a TTL", ttl], ["an --at-least", atLeast]] as const) {
    if (ms <= TTL_MS_MAX) continue;
    throw new UsageError(`Cannot run with ${what} of ${ms} ms as it must be at most 1d`);
  }
  if (ttl < RUN_TTL_MS_MIN) {
    throw new UsageError(`Cannot run with a TTL of ${ttl} ms as it must be at least 1s`);
  }
  if (grace > ttl / GRACE_DIVISOR_MIN) {
    throw new UsageError(
      `Cannot run with a grace period of ${grace} ms as it must be at most half of the TTL`,
    );
  }
  return grace;
}

/**
 * @throws {UsageError} If the command is missing, or if a shell would take its name for an option.
 */
function checkCommand(words: readonly string[]): readonly string[] {
  const [name] = words;
  if (name === "") throw new UsageError("Cannot run a command with an empty name");
  if (!name.startsWith("-")) return words;
  throw new UsageError(`Cannot run '${name}' as its name begins with '-': write './${name}'`);
}
