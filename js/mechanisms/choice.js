/** What choice mechanisms share: labels, odds that must favour the truth, short codes, and a bit for each choice. */

import { fail } from "../errors.js";
import { CHOICE_BITS, truthThreshold, unaryThreshold } from "../noise_levels.js";
import { take } from "../randomness.js";
export { bytesBelow, packBelow } from "../integers.js";
import { check, isObject, isText, listOf, oneOf, record, text, whole } from "../shapes.js";

const LABELS = listOf(text(200), 2, 10000);
const COUNT = record({ count: whole(2, 1 << 20) });

/** Choices by count are the whole numbers below it; only their number is kept. */
function choices(value, path) {
  return isObject(value) ? { length: COUNT(value, path).count } : LABELS(value, path);
}

/** With the labels of a yes/no, and with null, no answer, as the last choice where refusal is offered. */
function complete(asked, path) {
  const { choices = ["no", "yes"], mechanism, refusal } = asked;
  check(!("ordered" in asked) || asked.choices?.at, `${path}.ordered`);
  check(!refusal || (choices.at && mechanism.name !== "memoized"), `${path}.refusal`);
  return { ...asked, choices: refusal ? [...choices, null] : choices };
}

const either = oneOf(true, false);
const more = { refusal: either, ordered: either };
export const choice = { ask: "choice", fields: { choices }, more, complete };
export const yesNo = { ask: "yes_no", fields: {}, more, complete };

/** answer → the index of the choice; a yes/no also takes true and false. A refusal, null, is the last choice. */
export function choiceIndex({ id, ask, choices }) {
  if (!Array.isArray(choices)) return (answer) => numberedIndex(id, choices.length, answer);
  // Found by a hash, with a key that no study knows: walking a list takes longer for a later choice.
  const places = new Map(choices.map((label, index) => [label, index]));
  if (ask === "yes_no") places.set(false, 0).set(true, 1);
  return (answer) => places.get(answer) ?? fail("answer", "choice", id);
}

/** Choices by count are whole numbers, given as such or as text. */
function numberedIndex(id, count, answer) {
  const number = isText(answer) && /^\d{1,7}$/.test(answer) ? +answer : answer;
  const good = Number.isInteger(number) && number >= 0 && number < count;
  return good ? number : fail("answer", "whole", id);
}

/** Return T = ⌊2**32 often·e**ε / (often·e**ε + seldom)⌋: T in 2**32 reports support the truth. */
export function thresholdFor(question, often, seldom) {
  const threshold = truthThreshold(question.mechanism.epsilon, often, seldom);
  checkOdds(question, threshold * BigInt(seldom), ((1n << CHOICE_BITS) - threshold) * BigInt(often));
  return threshold;
}

/** The two weights of a report, for a choice that it supports and for one that it does not. */
export function checkOdds({ path }, often, seldom) {
  check(seldom > 0n && often > seldom, `${path}.mechanism.epsilon`);
}

/** The bytes of a bit for each choice: choice j is bit j % 8 (lowest first) of byte j // 8. */
export function unarySize({ choices, path }) {
  check(choices.length <= 65536, `${path}.mechanism.name`);
  return Math.ceil(choices.length / 8);
}

/** Return the mechanism whose bits `noisy` draws, other bits than the true one with T / 2**32. */
export function unary(question, epsilon, noisy) {
  const payloadSize = unarySize(question);
  const threshold = unaryThreshold(epsilon);
  checkOdds(question, (1n << CHOICE_BITS) - threshold, threshold);
  const randomise = (quantised, random) => {
    const bits = noisy(new Uint8Array(payloadSize), quantised, threshold, random);
    return trimmed(bits, question.choices.length);
  };
  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise, says: "some" };
}

/** 8 × size bits, each 1 with probability threshold / 2**32. Bit-sliced: lowest digit first. */
export function biasedBits(threshold, size, random) {
  const buffer = take(random, size * Number(CHOICE_BITS));
  const bits = new Uint8Array(size);
  for (let digit = 0; digit < CHOICE_BITS; digit++) {
    const isOne = (threshold >> BigInt(digit)) & 1n;
    const fresh = buffer.subarray(digit * size);
    for (let index = 0; index < size; index++) {
      bits[index] = isOne ? bits[index] | fresh[index] : bits[index] & fresh[index];
    }
  }
  return bits;
}

/** The bits, each flipped with probability threshold / 2**32. */
export const flipped = (bits, threshold, random) =>
  biasedBits(threshold, bits.length, random).map((byte, index) => byte ^ bits[index]);

/** A bit for each choice, the given one's 1; touches every byte, whatever the answer. */
export const oneHot = (bits, index) => bits.map((_, byte) => Number(byte === index >> 3) << (index & 7));

/** The bits without those beyond the last choice. */
export function trimmed(bits, choices) {
  bits[bits.length - 1] &= 255 >> (8 * bits.length - choices);
  return bits;
}
