/** What Linux says of processes. */

/**
 * The state of a process, such as `T` for a stopped one, and who started it; `undefined` if there
 * is none, or no Linux.
 */
export function processStat(pid: number): { state: string; parent: number } | undefined {
  try {
    const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
