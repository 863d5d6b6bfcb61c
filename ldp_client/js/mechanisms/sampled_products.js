/** One product of two entries of a record, as a noisy sign: the twin of ldp_client/mechanisms/sampled_products.py. */

import { bytesBelow, packBelow } from "../integers.js";
import { CHOICE_BITS, truthThreshold } from "../noise_levels.js";
import { UNIT_BITS } from "../quantise.js";
import { randomUint32, take, uniformBelow, viewOf } from "../randomness.js";
import { check, epsilon, listOf, oneOf, record as object, whole } from "../shapes.js";
import { checkRecord, fieldsOf, record } from "./record.js";

const UNIT = 2 ** UNIT_BITS;
// A product of two entries is a whole number of 2**-40: it is rounded by 41 of 64 random bits, exactly.
const SPARE_BITS = 23n;
const KINDS = ["means", "squares", "features", "response"];

const { response: field } = record.fields;
const weights = object({}, Object.fromEntries(KINDS.map((kind) => [kind, whole(1, 1000)])));

const sampled = {
  ...record,
  fields: { features: listOf(field, 1, 128, "id"), response: field },
  mechanism: object({ name: oneOf("sampled_products"), epsilon }, { weights }),
};

/** Which of the products of (1, features…, response), and its sign: the true one with probability T / 2**32. */
export const mechanism = { kinds: [sampled], check: checkSampled, build };

function checkSampled(question) {
  const { features, response, path } = question;
  check(features.length < 17 || [response, ...features].some((one) => one.bounds), `${path}.features`);
  checkRecord(question);
}

function build(question) {
  const { features, response, mechanism: stated } = question;
  const threshold = truthThreshold(stated.epsilon, 1, 1);
  check(2n * threshold > 1n << CHOICE_BITS, `${question.path}.mechanism.epsilon`);
  const entries = [{}, ...features, response];
  const [pairs, ends] = [[], []];
  let total = 0;
  entries.forEach((entry, i) => {
    for (let j = i; j < entries.length; j++) {
      // The square of the constant or of a yes/no is everybody's.
      if (i === j && !entry.bounds) continue;
      const kind = i === j ? 1 : i && 2 + (j > features.length);
      ends.push((total += stated.weights?.[KINDS[kind]] ?? 1));
      pairs.push([i, j]);
    }
  });
  const payloadSize = bytesBelow(2 * pairs.length);

  /** (1, features…, response) in units of 2**-20. */
  function quantise(answer) {
    const [scaled, responded] = fieldsOf(question, answer, UNIT, UNIT);
    return [UNIT, ...scaled.map(Number), responded];
  }

  /** Draws the product and rounds it, then the sign that is told. */
  function randomise(quantised, random) {
    const drawn = viewOf(take(random, 12));
    const word = drawn.getUint32(0);
    const number = word < 2 ** 32 - (2 ** 32 % total) ? word % total : uniformBelow(total, random);
    const place = ends.findIndex((end) => end > number);
    const [i, j] = pairs[place];
    const positive = Number(drawn.getBigUint64(4) >> SPARE_BITS) < 2 ** 40 + quantised[i] * quantised[j];
    const told = positive === randomUint32(random) < threshold;
    return packBelow(2 * place + told, payloadSize);
  }

  return { integers: { threshold, total }, payloadSize, quantise, randomise, pairs, says: "product" };
}
