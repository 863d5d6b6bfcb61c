/** Products of two entries of a record, as noisy signs: the twin of ldp_client/mechanisms/sampled_products.py. */

import { bytesBelow, packBelow } from "../integers.js";
import { UNIT_BITS } from "../quantise.js";
import { randomUint32, take, uniformBelow, viewOf } from "../randomness.js";
import { check, listOf } from "../shapes.js";
import { thresholdFor } from "./choice.js";
import { checkRecord, fieldsOf, record } from "./record.js";

const UNIT = 2 ** UNIT_BITS;
const { response: field } = record.fields;
const later = (value) => value;

const sampled = {
  ...record,
  fields: { features: listOf((one, path) => (isLeveled(one) ? one : field(one, path)), 1, 128, "id"), response: field },
};

/** Which of the products of (1, features…, response), and its sign: the true one with probability T / 2**32. */
export const mechanism = { kinds: [sampled], optional: { weights: later, products: later }, check: checkSampled, build };

/** Whether levels.js reads the feature, whatever else it has; all others are read here. */
const isLeveled = (one) => one?.ask === "choice" || one?.cuts;

/** The square of the constant or of a yes/no is everybody's. */
const plain = (one, other) => +(one !== other || !!one.bounds);

async function checkSampled(question) {
  const { features, response, mechanism: stated, path } = question;
  if (features.some(isLeveled)) await (await import("../levels.js")).read(question);
  check(!features[16] || [response, ...features].some((one) => one.bounds), `${path}.features`);
  checkRecord(question);
  // More than a name and ε.
  if (Object.keys(stated)[2]) (await import("../product_blocks.js")).read(question);
}

/** A product's sign. It is a whole number of 2**-40, and rounded by 41 of 64 random bits, exactly. */
export const isPositive = (quantised, [i, j], rounding) =>
  rounding >> 23n < UNIT * UNIT + quantised[i] * quantised[j];

function build(question) {
  const {
    features, response, share = plain, inBlocks = later,
    entries = [{}, ...features, response],
  } = question;
  const threshold = thresholdFor(question, 1, 1);
  // Of each product its entries, and the weights up to it, added up.
  const pairs = [];
  let total = 0;
  entries.forEach((one, i) =>
    entries.forEach((other, j) => {
      const weight = j >= i && share(one, other);
      if (weight) pairs.push([i, j, (total += weight)]);
    }),
  );
  const payloadSize = bytesBelow(2 * pairs.length);

  /** (1, features…, response) in units of 2**-20. */
  const quantise = (answer) => [UNIT, ...fieldsOf(question, answer, UNIT, UNIT).flat().map(Number)];

  /** Draws the product and rounds it, then the sign that is told. */
  function randomise(quantised, random) {
    const drawn = viewOf(take(random, 12));
    const word = drawn.getUint32(0);
    const rest = word % total;
    const number = word - rest > 2 ** 32 - total ? uniformBelow(total, random) : rest;
    const place = pairs.findIndex((pair) => pair[2] > number);
    const positive = isPositive(quantised, pairs[place], drawn.getBigUint64(4));
    const told = positive === randomUint32(random) < threshold;
    return packBelow(2 * place + told, payloadSize);
  }

  return inBlocks({ integers: { threshold, total }, payloadSize, quantise, randomise, pairs, says: "product" });
}
