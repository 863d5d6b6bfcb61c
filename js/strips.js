/** Exactly rounded normal and Laplace noise: ldp_client/core/strips.py explains the construction. */

import { NOISE_BITS } from "./noise_levels.js";
import { expBounds } from "./integers.js";
import { randomUint64, take, viewOf } from "./randomness.js";

const STRIP_BITS = 5n;
const STRIPS = 512;
const COLUMN_BITS = 55n;
// STRIPS columns of CAPACITY heights make 2**64.
const CAPACITY = 1n << COLUMN_BITS;
const SCALE = (CAPACITY - 1n) * 512n;
const POINT_BITS = 31;
const CURVE_BITS = 96n;
const DRAW_BYTES = 12;
// A strip is 2**CELL_BITS grid units wide.
const CELL_BITS = Number(NOISE_BITS - STRIP_BITS);

/**
 * A function (count, random) that draws round(2**NOISE_BITS × X) for X of density exp(−curve(|x|)).
 *
 * curve: (point, pointBits, bits) → floor(2**bits × curve(point / 2**pointBits)), covered up to 16.
 * hasTail: whether the last strip stands for the whole rest of an exponential instead.
 */
function strips(curve, hasTail) {
  const isTail = (strip) => hasTail && strip === STRIPS - 1;
  // 2**bits × exp(−curve) from below, and from above.
  const low = (...place) => expBounds(-curve(...place) - 1n, place[2])[0];
  const high = (...place) => expBounds(-curve(...place), place[2])[1];

  const heights = Array.from({ length: STRIPS }, (_, strip) => {
    const height = high(BigInt(strip), STRIP_BITS, CURVE_BITS);
    return isTail(strip) ? height << STRIP_BITS : height;
  });
  const total = sum(heights);
  // Heights that are surely under the curve.
  const sure = heights.map((_, strip) =>
    isTail(strip) ? 0n : (SCALE * low(BigInt(strip + 1), STRIP_BITS, CURVE_BITS)) / total,
  );
  const columns = alias(heights.map((height) => (SCALE * height) / total + 1n));

  function draw([word, point], random) {
    for (let base = 0; ; ) {
      const column = Number(word >> COLUMN_BITS);
      const rest = word % CAPACITY;
      const [threshold, other, start] = columns[column];
      const [strip, height] = rest < threshold ? [column, rest] : [other, rest + start];
      if (height < sure[strip] || isUnderCurve(strip, point >>> 1, height, random)) {
        if (!isTail(strip)) {
          // The point's top CELL_BITS + 1 bits, rounded to CELL_BITS.
          const offset = ((point >>> (POINT_BITS - CELL_BITS)) + 1) >>> 1;
          const magnitude = base + (strip << CELL_BITS) + offset;
          return point & 1 ? -magnitude : magnitude;
        }
        base += strip << CELL_BITS;
      }
      [word, point] = digits(take(random, DRAW_BYTES), 1, 0);
    }
  }

  /** Whether height + [0, 1) lies under M·f at strip + point, drawing more digits until certain. */
  function isUnderCurve(strip, point, height, random) {
    const [stretch, width] = isTail(strip) ? [STRIP_BITS, 0n] : [0n, 1n];
    let pointBits = BigInt(POINT_BITS);
    let place = (BigInt(strip) << pointBits) | (width * BigInt(point));
    pointBits += STRIP_BITS;
    for (let bits = CURVE_BITS; ; bits += 64n) {
      if ((height + 1n) * total <= (SCALE * low(place + width, pointBits, bits)) << stretch) return true;
      if (height * total >= (SCALE * high(place, pointBits, bits)) << stretch) return false;
      height = (height << 64n) | randomUint64(random);
      if (width) {
        place = (place << 64n) | randomUint64(random);
        pointBits += 64n;
      }
    }
  }

  return (count, random) => {
    const bytes = take(random, DRAW_BYTES * count);
    return Array.from({ length: count }, (_, index) => draw(digits(bytes, count, index), random));
  };
}

/** The word and the point that one of `count` draws begins with. */
function digits(bytes, count, index) {
  const view = viewOf(bytes);
  return [view.getBigUint64(8 * index, true), view.getUint32(8 * count + 4 * index, true)];
}

/**
 * Walker's alias table, exact, of integer weights, the first of which is increased until all are 2**64: every
 * column [threshold, other, otherStart] holds CAPACITY of one or two strips.
 */
function alias(left) {
  left[0] += CAPACITY * BigInt(STRIPS) - sum(left);
  const columns = left.map((_, strip) => [CAPACITY, strip, 0n]);
  const small = [];
  const large = [];
  left.forEach((weight, strip) => (weight < CAPACITY ? small : large).push(strip));
  while (small.length) {
    const column = small.pop();
    const giver = large.at(-1);
    left[giver] -= CAPACITY - left[column];
    // The giver keeps heights 0..left; what it gives is the part just above.
    columns[column] = [left[column], giver, left[giver] - left[column]];
    if (left[giver] < CAPACITY) small.push(large.pop());
  }
  return columns;
}

const sum = (values) => values.reduce((total, value) => total + value);
const halfSquare = (point, pointBits, bits) => ((point * point) << bits) >> (2n * pointBits + 1n);
const identity = (point, pointBits, bits) => (point << bits) >> pointBits;

let drawNormal, drawLaplace;

/** `count` draws of round(2**20 × N(0, 1)), the normal truncated at ±16. */
export const normal = (count, random) => (drawNormal ??= strips(halfSquare, false))(count, random);

/** `count` draws of round(2**20 × Laplace(1)), untruncated. */
export const laplace = (count, random) => (drawLaplace ??= strips(identity, true))(count, random);
