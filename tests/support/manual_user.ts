/**
 * The user that the manual gives the lock, and whether servers of tests give its rights to every
 * client.
 *
 * `deno task test integration` sets `HASP_TEST_ACL=1`: nothing of the library needs more than the
 * manual says.
 */

const PAGE = new URL("../../docs/operations.md", import.meta.url);

/**
 * The rules of the user of the file for three hosts: its password first, then its keys, channels
 * and commands.
 */
export function manualUser(): string[] {
  const [, rules] = /^user locker on (.*)$/mu.exec(Deno.readTextFileSync(PAGE))!;
  return rules.split(" ");
}

/**
 * The users of servers of tests, if clients are to have the rights of the manual's user alone: the
 * default user has them. Tests set no `keyPrefix`; its keys are all then, as the manual says.
 *
 * @param more Rights that the manual names for what a test does, or that its own commands need.
 */
export function restrictedUsers(more: readonly string[] = []): string[] | undefined {
  if (Deno.env.get("HASP_TEST_ACL") !== "1") return undefined;
  const rights = manualUser().filter((rule) => !/^[>~]/u.test(rule));
  return [`default on nopass ~* ${[...rights, ...more].join(" ")}`];
}
