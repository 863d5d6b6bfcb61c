/** Noisy signs of products of two entries of a record: ldp_client/mechanisms/sampled_products.py. */

import { bytesBelow, packBelow } from "../integers.js";
import { UNIT_BITS } from "../quantise.js";
import { randomUint32, take, uniformBelow, viewOf } from "../randomness.js";
import { check, listOf, record as object, whole } from "../shapes.js";
import { thresholdFor } from "./choice.js";
import { fieldsOf, record } from "./record.js";

const UNIT = 2 ** UNIT_BITS;
const often = whole(1, 1000);
const weights = object({}, { means: often, squares: often, features: often, response: often });
const { response } = record.fields;
const feature = (value, path) => (isLeveled(value) ? value : response(value, path));
const sampled = { ...record, fields: { features: listOf(feature, 1, 128, "id"), response } };

/** A random block of products of (1, features…, response), its signs true with probability T / 2**32. */
export const mechanism = {
  kinds: [sampled],
  optional: { weights, products: whole(1, 4) },
  check: checkSampled,
  build,
};

/** Whether levels.js reads the feature, whatever else it has; all others are read here. */
const isLeveled = (value) => value?.ask === "choice" || value?.cuts;

async function checkSampled(question) {
  const { features, response, path } = question;
  if (features.some(isLeveled)) await (await import("../levels.js")).read(question);
  check(!features[16] || [response, ...features].some(({ bounds }) => bounds), `${path}.features`);
}

function build(question) {
  const { features, response, path, mechanism: { weights = {}, products = 1 } } = question;
  const { share = isDrawn, entries = [{}, ...features, response] } = question;
  const patterns = 2 ** products;
  const threshold = thresholdFor(question, 1, patterns - 1);
  const pairs = weightedPairs(entries, share, weights);
  check(products <= pairs.length, `${path}.mechanism.products`);
  const [blocks, total] = blocksOf(pairs, products);
  const payloadSize = bytesBelow(patterns * blocks.length);

  /** (1, features…, response) in units of 2**-20. */
  const quantise = (answer) => [UNIT, ...fieldsOf(question, answer, UNIT, UNIT).flat().map(Number)];

  /** Draws the block and rounds its products, then whether their signs are told, or which others. */
  function randomise(quantised, random) {
    const drawn = viewOf(take(random, 4 + 8 * products));
    const number = uniformBelow(total, random, drawn.getUint32(0));
    let told = blocks.findIndex(({ end }) => end > number);
    blocks[told].pairs.forEach(([i, j], slot) => {
      // The product is a whole number of 2**-40, and rounded by 41 of 64 random bits, exactly.
      const rounding = drawn.getBigUint64(4 + 8 * slot) >> 23n;
      told = 2 * told + (rounding < UNIT * UNIT + quantised[i] * quantised[j]);
    });
    const coin = randomUint32(random);
    const flips = products > 1 ? 1 + uniformBelow(patterns - 1, random) : 1;
    return packBelow(told ^ (flips * (coin >= threshold)), payloadSize);
  }

  return { integers: { threshold, total }, payloadSize, quantise, randomise, blocks, says: "signs" };
}

/** The square of the constant or of a yes/no is everybody's. */
const isDrawn = (one, other) => +(one !== other || !!one.bounds);

/** [i, j, weight] of each product that is drawn. */
function weightedPairs(entries, share, weights) {
  const last = entries.length - 1;
  const pairs = [];
  for (let i = 0; i <= last; i++) {
    for (let j = i; j <= last; j++) {
      const kind = i === j ? "squares" : !i ? "means" : j === last ? "response" : "features";
      const weight = share(entries[i], entries[j]) * (weights[kind] ?? 1);
      if (weight) pairs.push([i, j, weight]);
    }
  }
  return pairs;
}

/** Blocks {pairs, end: the weights up to it, added up} of so many products, and the last end. */
function blocksOf(pairs, products) {
  // Those of like weights together; where they are not enough for the last block, it has some of the first.
  if (products > 1) pairs.sort((first, other) => first[2] - other[2]);
  const blocks = [];
  let end = 0;
  for (let start = 0; start < pairs.length; start += products) {
    const block = Array.from({ length: products }, (_, slot) => pairs[(start + slot) % pairs.length]);
    for (const [, , weight] of block) end += weight;
    blocks.push({ pairs: block, end });
  }
  return [blocks, end];
}
