/** Optimized local hashing (Wang et al. 2017): randomized response on a hash of the choice. */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow, truthThreshold } from "../calibration.js";
import { randomUint32, truthOrOther } from "../randomness.js";
import { bytesBelow, concat, packBelow } from "./base.js";
import { checkOdds, choiceIndex } from "./choice.js";

// A prime above every choice; a·x + b stays below 2**53.
const PRIME = 2 ** 31 - 1;
const MOST_HASHES = 65536n;

/** The payload is a and b, drawn below PRIME, then ((a·x + b) mod PRIME) mod hashes by randomized response. */
export function mechanism(question) {
  const { epsilon } = question.mechanism;
  const best = ((expEpsilonBelow(epsilon) + (1n << (WORK_BITS - 1n))) >> WORK_BITS) + 1n;
  const hashes = Number(best < MOST_HASHES ? best : MOST_HASHES);
  const threshold = truthThreshold(epsilon, hashes);
  checkOdds(question, threshold * BigInt(hashes - 1), (1n << CHOICE_BITS) - threshold);
  const valueSize = bytesBelow(hashes);

  /** Draws the hash function, the coin and the other value, whatever the answer. */
  function randomise(quantised, random) {
    const a = belowPrime(random);
    const b = belowPrime(random);
    const value = truthOrOther(((a * quantised + b) % PRIME) % hashes, hashes, threshold, random);
    return concat(concat(packBelow(a, 4), packBelow(b, 4)), packBelow(value, valueSize));
  }

  return { integers: { threshold, hashes: BigInt(hashes) }, payloadSize: 8 + valueSize, quantise: choiceIndex(question), randomise };
}

function belowPrime(random) {
  for (;;) {
    const word = randomUint32(random) >>> 1;
    if (word < PRIME) return word;
  }
}
