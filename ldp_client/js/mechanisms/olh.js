/** Optimized local hashing (Wang et al. 2017): randomized response on a hash of the choice. */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow, truthThreshold } from "../calibration.js";
import { randomUint32, truthOrOther } from "../randomness.js";
import { bytesBelow, checkOdds, choice, choiceIndex, packBelow } from "./choice.js";

// A prime above every choice; all products stay below 2**53.
const PRIME = 2 ** 31 - 1;
const MOST_HASHES = 65536n;

/**
 * The payload is a, b and c, drawn below PRIME, then ((a·x² + b·x + c) mod PRIME) mod hashes by randomized
 * response.
 */
export const mechanism = { kinds: [choice], parameters: {}, build };

function build(question) {
  const { epsilon } = question.mechanism;
  const best = ((expEpsilonBelow(epsilon) + (1n << (WORK_BITS - 1n))) >> WORK_BITS) + 1n;
  const hashes = Number(best < MOST_HASHES ? best : MOST_HASHES);
  const threshold = truthThreshold(epsilon, hashes);
  checkOdds(question, threshold * BigInt(hashes - 1), (1n << CHOICE_BITS) - threshold);
  const valueSize = bytesBelow(hashes);

  /** Draws the hash function, the coin and the other value, whatever the answer. */
  function randomise(quantised, random) {
    const seed = [belowPrime(random), belowPrime(random), belowPrime(random)];
    const hash = ((((seed[0] * quantised + seed[1]) % PRIME) * quantised + seed[2]) % PRIME) % hashes;
    const value = truthOrOther(hash, hashes, threshold, random);
    return Uint8Array.of(...seed.flatMap((part) => [...packBelow(part, 4)]), ...packBelow(value, valueSize));
  }

  const integers = { threshold, hashes: BigInt(hashes) };
  return { integers, payloadSize: 12 + valueSize, quantise: choiceIndex(question), randomise };
}

function belowPrime(random) {
  for (;;) {
    const word = randomUint32(random) >>> 1;
    if (word < PRIME) return word;
  }
}
