/**
 * The order of the commands of one node: commands about one key go one after another.
 *
 * @module
 */
import type { ReplyReceiver } from "../redis/command_queue.ts";
import type { LockCommand } from "../redis_node/command_sender.ts";

/** A command, and who receives its reply. */
export interface SubmittedCommand {
  readonly command: LockCommand;
  readonly receiver: ReplyReceiver;
  readonly context: unknown;
  readonly tag: number;
}

/** Commands about the same keys, submitted in one tick: they are sent in their order. */
export class CommandGroup {
  /** The keys of locks that they are about. */
  readonly keys: readonly string[];
  /** The commands that have not been sent yet. */
  readonly commands: SubmittedCommand[] = [];
  /** How many earlier groups about one of the keys are not finished. */
  waits = 0;
  /** The groups that wait for this one. */
  readonly followers: CommandGroup[] = [];

  constructor(keys: readonly string[]) {
    this.keys = keys;
  }

  /** Whether a command belongs to this group: it is about the same keys, or about no key. */
  takes({ keys }: LockCommand): boolean {
    return keys.length === 0 ||
      keys.length === this.keys.length && keys.every((key, index) => key === this.keys[index]);
  }
}

/** The groups that are not finished, and the last one about each key. */
export class KeyOrder {
  /** In the order in which they came. */
  readonly groups: Set<CommandGroup> = new Set();
  readonly #last: Map<string, CommandGroup> = new Map();

  /** Puts a new group behind the earlier ones about its keys. */
  append(group: CommandGroup): void {
    this.groups.add(group);
    for (const key of new Set(group.keys)) {
      const before = this.#last.get(key);
      if (before) {
        before.followers.push(group);
        group.waits++;
      }
      this.#last.set(key, group);
    }
  }

  /**
   * A group is finished.
   *
   * @param group The group.
   * @returns The groups that waited for it alone.
   */
  finish(group: CommandGroup): CommandGroup[] {
    this.groups.delete(group);
    for (const key of group.keys) if (this.#last.get(key) === group) this.#last.delete(key);
    return group.followers.filter((follower) => --follower.waits === 0);
  }
}
