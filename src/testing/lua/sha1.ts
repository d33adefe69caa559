/**
 * SHA-1 (RFC 3174), by which scripts are called; not for secrets.
 *
 * The implementation of the runtime is asynchronous, and the reply of a server cannot wait for it.
 *
 * @module
 */

const BLOCK_BYTES = 64;
const START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0] as const;
/** The constant of each twenty rounds. */
const CONSTANTS = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6] as const;

/**
 * The SHA-1 of `bytes`.
 *
 * @param bytes The bytes to hash.
 * @returns Forty lower-case hexadecimal digits.
 */
export function sha1(bytes: Uint8Array): string {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = Uint32Array.from(START);
  for (let at = 0; at < padded.length; at += BLOCK_BYTES) addBlock(state, view, at);
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

function addBlock(state: Uint32Array, view: DataView, at: number): void {
  const words = new Uint32Array(80);
  for (let index = 0; index < 80; index++) {
    words[index] = index < 16 ? view.getUint32(at + index * 4) : rotated(
      words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16],
      1,
    );
  }
  let [a, b, c, d, e] = state;
  for (let index = 0; index < 80; index++) {
    const twenty = Math.floor(index / 20);
    const mixed = twenty === 0
      ? (b & c) | (~b & d)
      : twenty === 2
      ? (b & c) | (b & d) | (c & d)
      : b ^ c ^ d;
    const next = rotated(a, 5) + mixed + e + words[index] + CONSTANTS[twenty];
    [a, b, c, d, e] = [next >>> 0, a, rotated(b, 30), c, d];
  }
  [a, b, c, d, e].forEach((word, index) => state[index] += word);
}

function rotated(word: number, bits: number): number {
  return ((word << bits) | (word >>> (32 - bits))) >>> 0;
}
