/** Subset selection (Ye & Barg 2018; Wang et al. 2016): a random set of choices, the true one likely in it. */

import { WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { randomUint32, take, uniformBelow, viewOf } from "../randomness.js";
import { choice, choiceIndex, thresholdFor, unarySize } from "./choice.js";

/** `size` choices: the true one with probability T / 2**32, the rest uniform among the others. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const payloadSize = unarySize(question);
  const choices = question.choices.length;
  const size = subsetSize(question.mechanism.epsilon, choices);
  const threshold = thresholdFor(question, size, choices - size);

  /** Draws `size` other choices in random order, and lets the truth take the first one's place. */
  function randomise(quantised, random) {
    const truthful = randomUint32(random) < threshold;
    const others = drawOthers(choices - 1, size, random).map((other) => other + Number(other >= quantised));
    others[0] = truthful ? quantised : others[0];
    const bits = new Uint8Array(payloadSize);
    for (const other of others) bits[other >> 3] |= 1 << (other & 7);
    return bits;
  }

  const integers = { threshold, size: BigInt(size) };
  return { integers, payloadSize, quantise: choiceIndex(question), randomise, says: "some" };
}

/** max(1, round(k / (1 + e**ε))). */
function subsetSize(epsilon, choices) {
  const whole = (1n << WORK_BITS) + expEpsilonBelow(epsilon);
  return Math.max(1, Number(((BigInt(choices) << (WORK_BITS + 1n)) + whole) / (2n * whole)));
}

/** `size` distinct numbers below count in uniformly random order: a shuffle that stops early. */
function drawOthers(count, size, random) {
  const deck = Array.from({ length: count }, (_, index) => index);
  const words = viewOf(take(random, 4 * size));
  for (let place = 0; place < size; place++) {
    const chosen = place + uniformBelow(count - place, random, words.getUint32(4 * place, true));
    [deck[place], deck[chosen]] = [deck[chosen], deck[place]];
  }
  return deck.slice(0, size);
}
