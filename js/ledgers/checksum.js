/** Whether a text is still the one that was written. */

import { utf8 } from "../digest.js";

const POLYNOMIAL = 0xedb88320;

/** CRC-32 of a text's UTF-8 bytes, as zip files have it: at once, which the digests of browsers are not. */
export function checksum(text) {
  let rest = -1;
  for (const byte of utf8(text)) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (POLYNOMIAL & -(rest & 1));
  }
  return ~rest >>> 0;
}
