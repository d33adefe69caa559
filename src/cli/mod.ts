/**
 * The command line `hasp`: runs commands under a lock, shows and watches locks, and checks the
 * nodes.
 *
 * ```sh
 * deno run --allow-net --allow-run --allow-read --allow-write --allow-env --allow-sys=hostname \
 *   jsr:@hasp/redlock/cli --help
 * npx @hasp/redlock run --resource nightly-backup -- ./backup.sh
 * ```
 *
 * @module
 */
import { CommanderError } from "commander";
import process from "node:process";
import { errorLine, exitCodeOf, SUCCESS, USAGE } from "./exit_codes.ts";
import { createProgram } from "./program.ts";
import { signalExitCode } from "./run/signals.ts";
import { printError } from "./terminal.ts";

/**
 * Runs the command line. Reads the environment and files, prints, and receives signals, as the
 * process would.
 *
 * @param args The arguments after the name of the program, such as `["check", "--json"]`.
 * @returns The exit code. Never rejects.
 */
export async function main(args: readonly string[]): Promise<number> {
  let exitCode = SUCCESS;
  try {
    await createProgram((code) => exitCode = code).parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? SUCCESS : USAGE;
    printError(`hasp: ${errorLine(error)}`);
    return exitCodeOf(error);
  }
}

if (import.meta.main) {
  process.stdout.on("error", onOutputError);
  process.stderr.on("error", () => {}); // a message that nobody can read must not end a command
  process.exitCode = await main(process.argv.slice(2));
}

/**
 * Ends the process if its output cannot be written: never with success, which only a whole report
 * may have.
 */
function onOutputError(error: NodeJS.ErrnoException): void {
  // as after `hasp watch … | head`
  if (error.code === "EPIPE") process.exit(signalExitCode("SIGPIPE"));
  printError(`hasp: Cannot write the output: ${error.message}`);
  process.exit(USAGE);
}
