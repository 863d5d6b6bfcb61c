/** Interactions of features that have levels, or are yes/no: products of two features' entries, as further entries. */

import { UNIT_BITS } from "./quantise.js";
import { check, identifier, listOf } from "./shapes.js";

const UNIT = 2 ** UNIT_BITS;
const PAIRS = listOf(listOf(identifier, 2, 2), 1, 120);

/**
 * Reads what a question states, whose features have been read: `entries` get the products of two features' entries,
 * behind these, and `share` has each with the response alone. `cross`, from the entries without them to all, is new.
 * Throws LdpkitError "study".
 */
export function read(question) {
  const { entries, features, response, share, path } = question;
  const where = `${path}.interactions`;
  const stated = new Set();
  const products = PAIRS(question.interactions, where).flatMap((pair, index) => {
    const [ones, others] = pair.map((id, place) => {
      const feature = features.find((one) => one.id === id);
      check(feature, `${where}[${index}][${place}]`);
      return [...entries.keys()].filter((entry) => entries[entry].of === feature);
    });
    const name = [...pair].sort().join();
    check(!stated.has(name), `${where}[${index}]`);
    stated.add(name);
    const all = { id: pair.join(" × "), size: ones.length * others.length };
    return ones.flatMap((one) => others.map((other) => ({ ...all, both: [one, other] })));
  });
  question.entries = [...entries.slice(0, -1), ...products, response];
  question.share = (one, other) => ((one.both ? other === response : !other.both) ? share(one, other) : 0);
  // Both are −1 or 1: nothing is lost.
  const product = (vector) => ({ both: [one, other] }) => (vector[one] * vector[other]) / UNIT;
  question.cross = (vector) => [...vector.slice(0, -1), ...products.map(product(vector)), vector.at(-1)];
}
