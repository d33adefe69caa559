/**
 * Reading what clients send to a simulated node. The decoder of the library is what is tested, on
 * the other end; this one makes strings at once, because a simulation spends a good part of its
 * time on requests.
 */

/** Gathers byte strings into requests: arrays of bulk strings. */
export class RequestReader {
  readonly #onRequest: (words: string[]) => void;
  #text = "";
  #at = 0;

  /** @param onRequest Called with each request as soon as it is whole, as byte strings. */
  constructor(onRequest: (words: string[]) => void) {
    this.#onRequest = onRequest;
  }

  /**
   * Takes in some bytes.
   *
   * @throws {Error} If they are no requests.
   */
  push(bytes: string): void {
    this.#text += bytes;
    for (;;) {
      const words = this.#next();
      if (!words) return;
      this.#text = this.#text.slice(this.#at);
      this.#onRequest(words);
    }
  }

  /** The next request, if all of it is there. */
  #next(): string[] | undefined {
    this.#at = 0;
    const count = this.#header("*");
    if (count === undefined) return undefined;
    const words: string[] = [];
    while (words.length < count) {
      const length = this.#header("$");
      if (length === undefined) return undefined;
      const end = this.#at + length;
      if (this.#text.length < end + 2) return undefined;
      if (!this.#text.startsWith("\r\n", end)) throw new Error("Cannot find the end of a word");
      words.push(this.#text.slice(this.#at, end));
      this.#at = end + 2;
    }
    return words;
  }

  /** The number in a line that begins with `sign`, if all of it is there. */
  #header(sign: string): number | undefined {
    const end = this.#text.indexOf("\r\n", this.#at);
    if (this.#text.length > this.#at && this.#text[this.#at] !== sign) {
      throw new Error(`Cannot find "${sign}" where a request goes on`);
    }
    if (end < 0) return undefined;
    const number = Number(this.#text.slice(this.#at + 1, end));
    if (!Number.isSafeInteger(number) || number < 0) throw new Error("Cannot read a length");
    this.#at = end + 2;
    return number;
  }
}
