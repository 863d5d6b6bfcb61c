/* Shared by the core's files. Not part of the interface. */
#ifndef LDPKIT_INTERNAL_H
#define LDPKIT_INTERNAL_H

#include <float.h>

#include "ldpkit.h"

#if DBL_MANT_DIG != 53
#error "ldpkit needs doubles of 64 bits: pass -mdouble=64 to an AVR compiler"
#endif

#define NOISE_STRIPS 512

/* A law's strip table: limit, other and above are the columns of Walker's alias table (js/strips.js). */
typedef struct noise_law {
    uint64_t limit[NOISE_STRIPS];
    uint64_t above[NOISE_STRIPS];
    uint64_t sure[NOISE_STRIPS];
    uint16_t other[NOISE_STRIPS];
    uint32_t total[4]; /* U, the lowest limb first */
    uint8_t is_laplace;
} noise_law;

extern const noise_law ldp_laplace_law, ldp_normal_law;

/* Reads bytes that passed the tests. After a failure it gives zeros, and random->failed says why. */
void ldp_read(ldp_random *random, unsigned char *out, size_t size);
uint32_t ldp_word(ldp_random *random);
uint32_t ldp_below(ldp_random *random, uint32_t limit);
/* `truth` with probability threshold / 2^32, else another of 0..count-1; reads the same bytes in both cases. */
uint32_t ldp_truth_or_other(ldp_random *random, uint32_t truth, uint32_t count, uint64_t threshold);

/* One draw of a law in units of 2^-20, from the 12 bytes that begin it; it reads more if it needs them. */
int64_t ldp_noise(const noise_law *law, uint64_t word, uint32_t point, ldp_random *random);

/* The index of a checked choice, the refusal last. */
uint32_t ldp_place_of(const ldp_question *question, const ldp_value *value);
void ldp_draw_choice(const ldp_question *question, uint32_t place, ldp_random *random, uint64_t *work,
                     unsigned char *payload);
void ldp_draw_number(const ldp_question *question, const ldp_value *value, ldp_random *random, unsigned char *payload);
void ldp_draw_record(const ldp_question *question, const ldp_value *values, ldp_random *random, uint64_t *work,
                     unsigned char *payload);
void ldp_draw_products(const ldp_question *question, const ldp_value *values, ldp_random *random,
                       unsigned char *payload);

/* Integers in bytes. */
uint64_t ldp_from_little(const unsigned char *bytes, unsigned size);
uint64_t ldp_from_big(const unsigned char *bytes, unsigned size);
void ldp_to_big(uint64_t value, unsigned char *bytes, unsigned size);

/* All ones if the condition holds, else 0. Answers are selected by masks, without a branch. */
static inline uint32_t mask_if(int condition) { return (uint32_t)0 - (uint32_t)(condition != 0); }
static inline uint32_t select_word(uint32_t mask, uint32_t yes, uint32_t no) { return no ^ ((yes ^ no) & mask); }

/* 1 if the word has an odd number of ones. */
static inline uint32_t parity(uint32_t word) {
    word ^= word >> 16;
    word ^= word >> 8;
    word ^= word >> 4;
    word ^= word >> 2;
    return (word ^ (word >> 1)) & 1;
}

#endif
