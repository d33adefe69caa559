/** Programs whose output is compared or parsed. */

/** What asks programs for colours, or forbids them: Node warns where it finds both. */
const COLOUR_VARIABLES = ["FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"];

/**
 * What `hasp` reads: a test gives it nodes of its own, or none. What tests read themselves is
 * passed on.
 */
const HASP_VARIABLES = /^(HASP_(?!TEST_).*|CREDENTIALS_DIRECTORY)$/u;

/** Options of {@linkcode plainCommand}; the environment is added to this process's own. */
export type PlainCommandOptions = Omit<Deno.CommandOptions, "clearEnv">;

/**
 * A command that prints no colours and knows no nodes, whatever the terminal and the environment of
 * this process say.
 */
export function plainCommand(path: string | URL, options: PlainCommandOptions = {}): Deno.Command {
  const env = Deno.env.toObject();
  for (const name of Object.keys(env)) {
    if (COLOUR_VARIABLES.includes(name) || HASP_VARIABLES.test(name)) delete env[name];
  }
  return new Deno.Command(path, {
    ...options,
    clearEnv: true,
    env: { ...env, NO_COLOR: "1", ...options.env },
  });
}

/** Whether a program is installed and says its version. Deno throws at once if it is missing. */
export async function isInstalled(name: string): Promise<boolean> {
  try {
    return (await plainCommand(name, { args: ["--version"] }).output()).success;
  } catch {
    return false;
  }
}
