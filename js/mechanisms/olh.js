/** Optimized local hashing (Wang et al. 2017): randomized response on a hash of the choice. */

import { WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { randomUint32, truthOrOther } from "../randomness.js";
import { bytesBelow, choice, choiceIndex, packBelow, thresholdFor } from "./choice.js";

// A prime above every choice; all products stay below 2**53.
const PRIME = 2 ** 31 - 1;
const MOST_HASHES = 65536n;

/** a, b, c below PRIME, then ((a·x² + b·x + c) mod PRIME) mod hashes by randomized response. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const best = ((expEpsilonBelow(question.mechanism.epsilon) + (1n << (WORK_BITS - 1n))) >> WORK_BITS) + 1n;
  const hashes = Number(best < MOST_HASHES ? best : MOST_HASHES);
  const threshold = thresholdFor(question, 1, hashes - 1);
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
