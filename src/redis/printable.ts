/**
 * Text of a server, made fit for messages and logs.
 *
 * @module
 */

/** Longest text of a server that enters a message, in UTF-16 code units; the rest is cut off. */
export const PRINTABLE_LENGTH_MAX = 512;
/** What stands in place of a password. */
const MASK = "***";
/** What could forge a line, an escape sequence or the direction of the text around it; and halves of characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Makes a server's text safe to show: the password is replaced, everything that is no visible character is escaped
 * (`\u{1b}`), and what is longer than {@linkcode PRINTABLE_LENGTH_MAX} is cut off.
 *
 * @param text What the server sent.
 * @param password Our own password; replaced wherever it occurs.
 */
export function printable(text: string, password = ""): string {
  // The password goes first: escaping or cutting might leave a part of it that is not found any more.
  const masked = password === "" ? text : text.replaceAll(password, MASK);
  const cut = masked.length > PRINTABLE_LENGTH_MAX
    ? `${masked.slice(0, PRINTABLE_LENGTH_MAX)}…`
    : masked;
  return cut.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}
