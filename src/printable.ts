/**
 * Text of servers and callers, made fit for messages and logs.
 *
 * @module
 */

/**
 * Longest text of a server that enters a message by default, in UTF-16 code units; the rest is cut
 * off.
 */
export const PRINTABLE_LENGTH_MAX = 512;
/** Longest part of a resource that a message shows, in UTF-16 code units. */
const RESOURCE_LENGTH_MAX = 100;
/** The first half of a character that was cut in two. */
const CUT_PAIR = /[\ud800-\udbff]$/;
/** What stands in place of a secret. */
const MASK = "***";
/**
 * The shortest secret that is replaced inside of words, too: most words have a shorter one's
 * letters, and stay readable.
 */
export const MASKED_LENGTH_MIN = 6;
/** A character of a word. */
const WORD = /[\p{L}\p{N}_]/u;
/**
 * What could forge a line, an escape sequence or the direction of the text around it; and halves of
 * characters.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Makes a server's text safe to show: secrets are replaced, everything that is no visible character
 * is escaped (`\u{1b}`), and what is longer than `lengthMax` is cut off.
 *
 * @param text What the server sent.
 * @param secrets Our own password and user name, the longer one first; replaced wherever they
 * occur, and where they stand alone if they have fewer than six characters.
 * @param lengthMax How much of the text to keep at most, in UTF-16 code units.
 */
export function printable(
  text: string,
  secrets: readonly string[] = [],
  lengthMax: number = PRINTABLE_LENGTH_MAX,
): string {
  // They go first: escaping or cutting might leave a part of one that is not found any more.
  const safe = masked(text, secrets);
  return escaped(safe.length > lengthMax ? `${safe.slice(0, lengthMax)}…` : safe);
}

function escaped(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** A text with `***` in place of secrets, as {@linkcode printable} replaces them. */
export function masked(text: string, secrets: readonly string[]): string {
  const isWord = (character = "") => WORD.test(character);
  return secrets.reduce((text, secret) =>
    text.replaceAll(secret, (_, at: number) => {
      const inWord = isWord(text[at - 1]) || isWord(text[at + secret.length]);
      return inWord && secret.length < MASKED_LENGTH_MIN ? secret : MASK;
    }), text);
}

/** A resource in quotes, for messages: escaped, and cut if it is long. */
export function quoted(resource: string): string {
  const cut = resource.length > RESOURCE_LENGTH_MAX
    ? `${resource.slice(0, RESOURCE_LENGTH_MAX).replace(CUT_PAIR, "")}…`
    : resource;
  return escaped(JSON.stringify(cut)); // which escapes the controls of ASCII alone
}
