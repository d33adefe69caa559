/**
 * Text of servers as a report may show it.
 *
 * @module
 */

/** Longest word of a server in a report, such as its version, in characters: a run id has 40. */
export const WORD_LENGTH_MAX = 64;
/** Longest text of an error in a report, in characters. */
export const ERROR_LENGTH_MAX = 300;
/** Longest message or advice in a formatted report, in characters. */
export const MESSAGE_LENGTH_MAX = 8_000;

/** White space, control and format characters, unpaired surrogates and unassigned characters. */
const INVISIBLE = /[\p{C}\p{Z}]+/gu;

/**
 * Makes one line of visible characters from a text that a server may have chosen: so that it cannot forge lines or
 * columns, nor move the cursor of a terminal. Applied again it changes nothing.
 *
 * @param text The text.
 * @param lengthMax How many characters to keep at most; a text that is cut ends in `…`.
 */
export function printable(text: string, lengthMax: number): string {
  const line = text.replace(INVISIBLE, " ").trim();
  const characters = [...line];
  if (characters.length <= lengthMax) return line;
  return `${characters.slice(0, lengthMax - 1).join("").trimEnd()}…`;
}
