/**
 * A sorted set: members, each with a score, in the order of their scores.
 *
 * @module
 */

/** Members are byte strings; members with equal scores are in the order of their bytes. */
export class SortedSet {
  readonly #scores: Map<string, number> = new Map();
  readonly #members: string[] = [];

  /** How many members there are. */
  get size(): number {
    return this.#members.length;
  }

  /** The score of `member`; `undefined` if it is missing. */
  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  /**
   * Adds `member` or changes its score; returns whether it is new.
   *
   * @throws {RangeError} If the score is NaN, which has no place in the order.
   */
  add(member: string, score: number): boolean {
    if (Number.isNaN(score)) throw new RangeError("Cannot add member as its score is NaN");
    const isNew = !this.remove(member);
    this.#scores.set(member, score);
    this.#members.splice(this.#place(member, score), 0, member);
    return isNew;
  }

  /** Removes `member`; returns whether it was in the set. */
  remove(member: string): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    this.#members.splice(this.#place(member, score), 1);
    return this.#scores.delete(member);
  }

  /** The number of members before `member`; `undefined` if it is missing. */
  rank(member: string): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#place(member, score);
  }

  /** The members from one rank to another, both included; negative ranks count from the end. */
  range(first: number, last: number): string[] {
    const start = Math.max(0, first < 0 ? this.size + first : first);
    const end = last < 0 ? this.size + last : last;
    return this.#members.slice(start, Math.max(0, end + 1));
  }

  /** The index of `member`, or the index at which it belongs. */
  #place(member: string, score: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#members[middle];
      const otherScore = this.#scores.get(other)!;
      if (otherScore < score || otherScore === score && other < member) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
