/**
 * Programs whose output is compared or parsed.
 *
 * @module
 */

/** What asks programs for colours, or forbids them: Node warns where it finds both. */
const COLOUR_VARIABLES = ["FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"];

/** Options of {@linkcode plainCommand}; the environment is added to this process's own. */
export type PlainCommandOptions = Omit<Deno.CommandOptions, "clearEnv">;

/** A command that prints no colours, whatever the terminal and the environment of this process ask for. */
export function plainCommand(path: string | URL, options: PlainCommandOptions = {}): Deno.Command {
  const env = Deno.env.toObject();
  for (const name of COLOUR_VARIABLES) delete env[name];
  return new Deno.Command(path, {
    ...options,
    clearEnv: true,
    env: { ...env, NO_COLOR: "1", ...options.env },
  });
}
