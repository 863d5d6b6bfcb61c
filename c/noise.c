/*
 * Exact Laplace and normal noise from random bytes, in integers only: ldp_client/core/strips.py in C.
 *
 * 97.5 % of draws need one comparison with a table. The others need e^-c to 96 binary digits, and 64 more with each
 * reading. Fractions are arrays of limbs of 32 bits, the lowest first.
 */
#include <string.h>

#include "internal.h"

#define COLUMN_BITS 55
#define POINT_BITS 31
#define CELL_BITS 15
#define TAIL_STRIP (NOISE_STRIPS - 1)
/* The first comparison has 5 limbs of e^-c, each later one 2 more. After the last, more bytes would be needed with
   probability 2^-300: the source is broken. */
#define FIRST_LIMBS 5
#define ROUNDS 6
#define MOST_LIMBS (FIRST_LIMBS + 2 * (ROUNDS - 1))
/* e^-c is off by less than this in its last limb (15 squarings double the error of the series each). */
#define EXP_ERROR ((uint32_t)1 << 20)
#define SQUARINGS 15

/* product[0 .. a_size + b_size) = a × b. */
static void multiply(const uint32_t *a, unsigned a_size, const uint32_t *b, unsigned b_size, uint32_t *product) {
    memset(product, 0, (a_size + b_size) * sizeof *product);
    for (unsigned i = 0; i < a_size; i++) {
        uint64_t carry = 0;
        for (unsigned j = 0; j < b_size; j++) {
            carry += (uint64_t)a[i] * b[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + b_size] = (uint32_t)carry;
    }
}

/* number += value. */
static void add(uint32_t *number, unsigned size, uint32_t value) {
    for (unsigned i = 0; i < size && value; i++) {
        number[i] += value;
        value = number[i] < value;
    }
}

/* number -= value, at least 0. */
static void subtract(uint32_t *number, unsigned size, uint32_t value) {
    for (unsigned i = 0; i < size && value; i++) {
        uint32_t before = number[i];
        number[i] -= value;
        value = number[i] > before;
    }
    if (value) memset(number, 0, size * sizeof *number);
}

static void shift_right(uint32_t *number, unsigned size, unsigned bits) {
    for (unsigned i = 0; i < size; i++)
        number[i] = (uint32_t)(((i + 1 < size ? (uint64_t)number[i + 1] << 32 : 0) | number[i]) >> bits);
}

static void shift_left(uint32_t *number, unsigned size, unsigned bits) {
    for (unsigned i = size; i-- > 0;)
        number[i] = (uint32_t)((((uint64_t)number[i] << 32 | (i ? number[i - 1] : 0)) << bits) >> 32);
}

static int compare(const uint32_t *a, const uint32_t *b, unsigned size) {
    while (size--)
        if (a[size] != b[size]) return a[size] < b[size] ? -1 : 1;
    return 0;
}

/* result = a × b of two fractions, rounded down. */
static void multiply_fractions(const uint32_t *a, const uint32_t *b, unsigned limbs, uint32_t *result) {
    uint32_t product[2 * MOST_LIMBS];
    multiply(a, limbs, b, limbs, product);
    memcpy(result, product + limbs, limbs * sizeof *result);
}

/* power = e^-c for c = x or x² / 2, with sixteenth = x / 16; off by less than EXP_ERROR in the last limb. */
static void exp_minus(const noise_law *law, const uint32_t *sixteenth, unsigned limbs, uint32_t *power) {
    uint32_t small[MOST_LIMBS];
    memcpy(small, sixteenth, sizeof *small * limbs);
    if (!law->is_laplace) multiply_fractions(sixteenth, sixteenth, limbs, small);
    /* x / 16 / 2^11 and (x / 16)² / 2^8 are both c / 2^15, below 2^-8. */
    shift_right(small, limbs, law->is_laplace ? 11 : 8);
    /* Horner's scheme: 1 - s(1 - s/2 (1 - s/3 …)). The complement of z is 1 - z. */
    memset(power, 0xff, sizeof *power * limbs);
    for (unsigned n = 4 * limbs; n > 0; n--) {
        uint64_t rest = 0;
        multiply_fractions(small, power, limbs, power);
        for (unsigned i = limbs; i-- > 0;) {
            rest = rest << 32 | power[i];
            power[i] = ~(uint32_t)(rest / n);
            rest %= n;
        }
    }
    for (unsigned i = 0; i < SQUARINGS; i++) multiply_fractions(power, power, limbs, power);
}

/* Compares height × U with the curve at x, which is moved by its error towards `sign`. limbs: of x and e^-c. */
static int against_curve(const noise_law *law, const uint32_t *height, const uint32_t *sixteenth, unsigned limbs,
                         int sign, unsigned stretch) {
    static const uint32_t SCALE[2] = {(uint32_t)0 - NOISE_STRIPS, 0xffffffff}; /* S = 2^64 - 512 */
    uint32_t power[MOST_LIMBS + 1], curve[MOST_LIMBS + 3], left[MOST_LIMBS + 3] = {0};
    uint32_t product[MOST_LIMBS + 1];
    unsigned height_limbs = limbs - 3;
    exp_minus(law, sixteenth, limbs, power);
    power[limbs] = 0;
    if (sign > 0) add(power, limbs + 1, EXP_ERROR);
    else subtract(power, limbs + 1, EXP_ERROR);
    multiply(power, limbs + 1, SCALE, 2, curve);
    shift_left(curve, limbs + 3, stretch);
    /* The curve has 64 more binary digits than the heights. */
    multiply(height, height_limbs, law->total, 4, product);
    memcpy(left + 2, product, (height_limbs + 4) * sizeof *left);
    return compare(left, curve, limbs + 3);
}

/* Whether a random height is under the curve at a random point of the strip. */
static int under_curve(const noise_law *law, uint32_t strip, uint32_t point, uint64_t start, ldp_random *random) {
    int in_tail = law->is_laplace && strip == TAIL_STRIP;
    unsigned stretch = in_tail ? 5 : 0;
    /* x / 16 in limbs: 9 digits of the strip and 31 of the point, at the top of 5 limbs. */
    uint32_t low[MOST_LIMBS] = {0}, high[MOST_LIMBS], height[MOST_LIMBS], above[MOST_LIMBS];
    uint64_t place = (uint64_t)strip << POINT_BITS | (in_tail ? 0 : point);
    low[4] = (uint32_t)(place >> 8);
    low[3] = (uint32_t)(place << 24);
    height[0] = (uint32_t)start;
    height[1] = (uint32_t)(start >> 32);
    for (unsigned round = 0, limbs = FIRST_LIMBS; round < ROUNDS; round++, limbs += 2) {
        memcpy(high, low, limbs * sizeof *low);
        /* The last digit of the point is always 120 digits above the end. At the upper end of all, x is 16. */
        if (!in_tail) add(high + 3, limbs - 3, (uint32_t)1 << 24);
        if (compare(high, low, limbs) < 0) memset(high, 0xff, limbs * sizeof *high);
        memcpy(above, height, (limbs - 3) * sizeof *height);
        add(above, limbs - 3, 1);
        if (against_curve(law, above, high, limbs, -1, stretch) <= 0) return 1;
        if (against_curve(law, height, low, limbs, 1, stretch) >= 0) return 0;
        if (round + 1 == ROUNDS) break;
        memmove(height + 2, height, (limbs - 3) * sizeof *height);
        height[1] = ldp_word(random);
        height[0] = ldp_word(random);
        memmove(low + 2, low, limbs * sizeof *low);
        low[0] = low[1] = 0;
        if (in_tail) continue;
        uint32_t first = ldp_word(random), second = ldp_word(random);
        low[5] |= first >> 8;
        low[4] = first << 24 | second >> 8;
        low[3] = second << 24;
    }
    random->failed = LDP_ERROR_RANDOM_BROKEN;
    return 1;
}

int64_t ldp_noise(const noise_law *law, uint64_t word, uint32_t point, ldp_random *random) {
    int64_t base = 0;
    for (;;) {
        uint32_t column = (uint32_t)(word >> COLUMN_BITS), strip = column;
        uint64_t height = word & (((uint64_t)1 << COLUMN_BITS) - 1);
        if (height >= law->limit[column]) {
            strip = law->other[column];
            height += law->above[column];
        }
        if (height < law->sure[strip] || under_curve(law, strip, point >> 1, height, random)) {
            if (random->failed) return 0;
            base += (int64_t)strip << CELL_BITS;
            if (!law->is_laplace || strip != TAIL_STRIP) {
                /* The point's upper 16 digits, rounded to 15. */
                int64_t magnitude = base + (((point >> 16) + 1) >> 1);
                return point & 1 ? -magnitude : magnitude;
            }
        }
        unsigned char bytes[12];
        ldp_read(random, bytes, sizeof bytes);
        word = ldp_from_little(bytes, 8);
        point = (uint32_t)ldp_from_little(bytes + 8, 4);
    }
}
