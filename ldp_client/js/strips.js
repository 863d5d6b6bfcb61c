/**
 * Exactly rounded normal and Laplace noise from random bytes, in integers only: the twin of
 * ldp_client/core/strips.py, which explains the construction.
 */

import { NOISE_BITS } from "./calibration.js";
import { expBounds } from "./integers.js";
import { randomUint64, viewOf } from "./randomness.js";

const STRIP_BITS = 5n;
const STRIPS = 512;
const LAST_STRIP = STRIPS - 1;
const WHOLE = 1n << 64n;
const CAPACITY = WHOLE / BigInt(STRIPS);
const POINT_BITS = 31;
const CURVE_BITS = 96n;
const DRAW_BYTES = 12;
// A strip is 2**CELL_BITS grid units wide.
const CELL_BITS = Number(NOISE_BITS - STRIP_BITS);

/**
 * A function (count, random) that draws round(2**NOISE_BITS × X) for X of density exp(−curve(|x|)).
 *
 * curve: (point, pointBits, bits) → floor(2**bits × curve(point / 2**pointBits)), covered up to 16.
 * tail: whether the last strip stands for the whole rest of an exponential instead.
 */
function strips(curve, tail) {
  const table = weigh(curve, tail);
  const columns = alias(table.weights);
  const inTail = (strip) => tail && strip === LAST_STRIP;

  function draw(word, point, random) {
    for (let base = 0; ; ) {
      const [strip, height] = pick(columns, word);
      if (height < table.sure[strip] || isUnderCurve(strip, point >>> 1, height, random)) {
        if (!inTail(strip)) {
          // The point's top CELL_BITS + 1 bits, rounded to CELL_BITS.
          const offset = ((point >>> (POINT_BITS - CELL_BITS)) + 1) >>> 1;
          const magnitude = base + (strip << CELL_BITS) + offset;
          return point & 1 ? -magnitude : magnitude;
        }
        base += strip << CELL_BITS;
      }
      const view = viewOf(random(DRAW_BYTES));
      [word, point] = [view.getBigUint64(0, true), view.getUint32(8, true)];
    }
  }

  /** Whether height + [0, 1) lies under M·f at strip + point, drawing more digits until certain. */
  function isUnderCurve(strip, point, height, random) {
    const [stretch, width] = inTail(strip) ? [STRIP_BITS, 0n] : [0n, 1n];
    let place = (BigInt(strip) << BigInt(POINT_BITS)) | (width * BigInt(point));
    let pointBits = STRIP_BITS + BigInt(POINT_BITS);
    for (let bits = CURVE_BITS; ; ) {
      const scaled = (bound) => (table.scale * bound) << stretch;
      if ((height + 1n) * table.total <= scaled(low(curve(place + width, pointBits, bits), bits))) return true;
      if (height * table.total >= scaled(high(curve(place, pointBits, bits), bits))) return false;
      height = (height << 64n) | randomUint64(random);
      bits += 64n;
      if (width) {
        place = (place << 64n) | randomUint64(random);
        pointBits += 64n;
      }
    }
  }

  return (count, random) => {
    const view = viewOf(random(DRAW_BYTES * count));
    return times(count, (index) =>
      draw(view.getBigUint64(8 * index, true), view.getUint32(8 * count + 4 * index, true), random),
    );
  };
}

/** 2**bits × exp(−curve) from below. */
const low = (curve, bits) => expBounds(-curve - 1n, bits)[0];

/** 2**bits × exp(−curve) from above. */
const high = (curve, bits) => expBounds(-curve, bits)[1];

/** Integer weights that sum to 2**TOTAL_BITS, and the heights that are surely under the curve. */
function weigh(curve, tail) {
  const at = (edge) => curve(BigInt(edge), STRIP_BITS, CURVE_BITS);
  const upper = times(STRIPS, (edge) => high(at(edge), CURVE_BITS));
  if (tail) upper[LAST_STRIP] <<= STRIP_BITS;
  const total = sum(upper);
  const scale = WHOLE - BigInt(STRIPS);
  const sure = times(STRIPS, (edge) => (scale * low(at(edge + 1), CURVE_BITS)) / total);
  if (tail) sure[LAST_STRIP] = 0n;
  const weights = upper.map((height) => (scale * height) / total + 1n);
  weights[0] += WHOLE - sum(weights);
  return { weights, sure, total, scale };
}

/**
 * Walker's alias table, exact: every column [threshold, other, otherStart] holds CAPACITY of one or two
 * strips.
 */
function alias(left) {
  const columns = left.map((_, strip) => [CAPACITY, strip, 0n]);
  const small = columns.map((_, strip) => strip).filter((strip) => left[strip] < CAPACITY);
  const large = columns.map((_, strip) => strip).filter((strip) => left[strip] >= CAPACITY);
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

/** The strip that a word picks, and the height in it. */
function pick(columns, word) {
  const column = Number(word / CAPACITY);
  const height = word % CAPACITY;
  const [threshold, other, otherStart] = columns[column];
  return height < threshold ? [column, height] : [other, height + otherStart];
}

const times = (count, make) => Array.from({ length: count }, (_, index) => make(index));
const sum = (values) => values.reduce((total, value) => total + value, 0n);
const halfSquare = (point, pointBits, bits) => ((point * point) << bits) >> (2n * pointBits + 1n);
const identity = (point, pointBits, bits) => (point << bits) >> pointBits;

let drawNormal, drawLaplace;

/** `count` draws of round(2**20 × N(0, 1)), the normal truncated at ±16. */
export const normal = (count, random) => (drawNormal ??= strips(halfSquare, false))(count, random);

/** `count` draws of round(2**20 × Laplace(1)), untruncated. */
export const laplace = (count, random) => (drawLaplace ??= strips(identity, true))(count, random);
