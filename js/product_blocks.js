/** Sampled products where a study says how often each kind is drawn, or how many of them a report has. */

import { bytesBelow, packBelow } from "./integers.js";
import { thresholdFor } from "./mechanisms/choice.js";
import { isPositive } from "./mechanisms/sampled_products.js";
import { randomUint32, take, uniformBelow, viewOf } from "./randomness.js";
import { check, record, whole } from "./shapes.js";

const KINDS = ["means", "squares", "features", "response"];
const weights = record({}, Object.fromEntries(KINDS.map((kind) => [kind, whole(1, 1000)])));
const asIs = (value) => value;
const shape = record({ name: asIs, epsilon: asIs }, { weights, products: whole(1, 4) });

/** Checks what a question states of its products, and has them sent so. Throws LdpkitError "study". */
export function read(question) {
  shape(question.mechanism, `${question.path}.mechanism`);
  question.inBlocks = (one) => inBlocks(question, one);
}

/** What sends products in blocks of so many, from what sends them `one` by one, each with the weights up to it. */
function inBlocks(question, one) {
  const { weights = {}, products = 1 } = question.mechanism;
  const patterns = 2 ** products;
  const threshold = thresholdFor(question, 1, patterns - 1);
  const last = Math.max(...one.pairs.map(([, j]) => j));
  const kind = (i, j) => (i === j ? 1 : i && 2 + (j === last));
  const pairs = one.pairs.map(([i, j, end], place) => {
    return [i, j, (end - (one.pairs[place - 1]?.[2] ?? 0)) * (weights[KINDS[kind(i, j)]] ?? 1)];
  });
  const count = pairs.length;
  check(products <= count, `${question.path}.mechanism.products`);
  // Those of like weights together; where they are not enough for the last block, it has some of the first.
  if (products > 1) pairs.sort((first, other) => first[2] - other[2]);
  let total = 0;
  const blocks = [];
  for (let start = 0; start < count; start += products) {
    const block = Array.from({ length: products }, (_, slot) => pairs[(start + slot) % count]);
    for (const [, , weight] of block) total += weight;
    blocks.push({ pairs: block, end: total });
  }
  const payloadSize = bytesBelow(patterns * blocks.length);

  /** Draws the block and rounds its products, then whether their signs are told, or which others are. */
  function randomise(quantised, random) {
    const drawn = viewOf(take(random, 4 + 8 * products));
    const word = drawn.getUint32(0);
    const rest = word % total;
    const number = word - rest > 2 ** 32 - total ? uniformBelow(total, random) : rest;
    let told = blocks.findIndex(({ end }) => end > number);
    blocks[told].pairs.forEach((pair, slot) => {
      told = 2 * told + isPositive(quantised, pair, drawn.getBigUint64(4 + 8 * slot));
    });
    const coin = randomUint32(random);
    const flips = products > 1 ? 1 + uniformBelow(patterns - 1, random) : 1;
    return packBelow(told ^ (flips * (coin >= threshold)), payloadSize);
  }

  const says = products > 1 ? "signs" : "product";
  return { ...one, integers: { threshold, total }, payloadSize, randomise, blocks, says };
}
