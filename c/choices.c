/* Choice mechanisms: one place x of n choices in, one payload out. No branch or index depends on x. */
#include <string.h>

#include "internal.h"

#define PRIME (((uint32_t)1 << 31) - 1)

uint32_t ldp_place_of(const ldp_question *question, const ldp_value *value) {
    return select_word(mask_if(value->kind == LDP_REFUSAL), question->choices - 1, value->choice);
}

/* Byte `index` of the bits whose only 1 is bit x. */
static unsigned char bit_in_byte(uint32_t x, uint32_t index) {
    return (unsigned char)(((uint32_t)1 << (x & 7)) & mask_if(index == x >> 3));
}

/* A mask of the bits of byte `index` that choices have: the last byte may have spare bits. */
static unsigned char choices_in_byte(const ldp_question *question, uint32_t index) {
    uint32_t left = question->choices - 8 * index;
    return (unsigned char)(left < 8 ? ((uint32_t)1 << left) - 1 : 0xff);
}

/* A bit for each choice, 1 with probability threshold / 2^32: all fractions are compared digit by digit. */
static void biased_bits(const ldp_question *question, uint64_t threshold, ldp_random *random, unsigned char *bits) {
    memset(bits, 0, question->payload_size);
    for (unsigned digit = 0; digit < 32; digit++) {
        uint32_t one = mask_if((threshold >> digit & 1) != 0);
        for (uint32_t i = 0; i < question->payload_size; i++) {
            unsigned char fresh;
            ldp_read(random, &fresh, 1);
            bits[i] = (unsigned char)(((bits[i] | fresh) & one) | (bits[i] & fresh & ~one));
        }
    }
    for (uint32_t i = 0; i < question->payload_size; i++) bits[i] &= choices_in_byte(question, i);
}

static void draw_oue(const ldp_question *question, uint32_t x, ldp_random *random, unsigned char *payload) {
    biased_bits(question, question->threshold, random, payload);
    for (uint32_t i = 0; i < question->payload_size; i++) {
        unsigned char fresh, own = bit_in_byte(x, i);
        ldp_read(random, &fresh, 1);
        payload[i] = (unsigned char)((payload[i] & ~own) | (fresh & own));
    }
}

static void draw_sue(const ldp_question *question, uint32_t x, ldp_random *random, unsigned char *payload) {
    biased_bits(question, question->threshold, random, payload);
    for (uint32_t i = 0; i < question->payload_size; i++) payload[i] ^= bit_in_byte(x, i);
}

/* Draws d of n - 1 numbers, then moves those from x on up by one, to leave place for x itself. */
static void draw_subset(const ldp_question *question, uint32_t x, ldp_random *random, uint64_t *work,
                        unsigned char *payload) {
    uint32_t *deck = (uint32_t *)work, others = question->choices - 1;
    unsigned char *words = (unsigned char *)(deck + others);
    uint32_t truthful = mask_if(ldp_word(random) < question->threshold);
    /* 1. The first d of a shuffled deck. */
    ldp_read(random, words, 4 * (size_t)question->size);
    for (uint32_t i = 0; i < others; i++) deck[i] = i;
    for (uint32_t i = 0; i < question->size; i++) {
        uint32_t word = (uint32_t)ldp_from_little(words + 4 * i, 4), left = others - i;
        uint64_t ceiling = ((uint64_t)1 << 32) - ((uint64_t)1 << 32) % left;
        uint32_t chosen = i + (word < ceiling ? word % left : ldp_below(random, left));
        uint32_t kept = deck[i];
        deck[i] = deck[chosen];
        deck[chosen] = kept;
    }
    /* 2. Their bits. If the truth is told it replaces the first. */
    memset(payload, 0, question->payload_size);
    for (uint32_t i = 0; i < question->size; i++)
        payload[deck[i] >> 3] |= (unsigned char)(((uint32_t)1 << (deck[i] & 7)) & ~(i == 0 ? truthful : 0));
    /* 3. The bits from x on move up by one. */
    uint32_t carry = 0;
    for (uint32_t i = 0; i < question->payload_size; i++) {
        uint32_t inside = mask_if(i == x >> 3), before = mask_if(i < x >> 3);
        uint32_t stay = before | ((((uint32_t)1 << (x & 7)) - 1) & inside);
        uint32_t moved = payload[i] & ~stay;
        uint32_t own = bit_in_byte(x, i) & truthful;
        payload[i] = (unsigned char)((payload[i] & stay) | moved << 1 | carry | own);
        carry = moved >> 7 & 1;
    }
}

static uint32_t below_prime(ldp_random *random) {
    for (;;) {
        uint32_t word = ldp_word(random) >> 1;
        if (word < PRIME) return word;
    }
}

/* The remainder modulo 2^31 - 1 of a number below 2^62 + 2^32, without a division. */
static uint32_t reduced(uint64_t number) {
    number = (number & PRIME) + (number >> 31);
    number = (number & PRIME) + (number >> 31);
    return (uint32_t)number - (PRIME & mask_if(number >= PRIME));
}

static void draw_hash(const ldp_question *question, uint32_t x, ldp_random *random, unsigned char *payload) {
    uint32_t a = below_prime(random), b = below_prime(random), c = below_prime(random);
    uint32_t hash = reduced((uint64_t)reduced((uint64_t)a * x + b) * x + c) % question->size;
    uint32_t value = ldp_truth_or_other(random, hash, question->size, question->threshold);
    ldp_to_big(a, payload, 4);
    ldp_to_big(b, payload + 4, 4);
    ldp_to_big(c, payload + 8, 4);
    ldp_to_big(value, payload + 12, question->payload_size - 12);
}

static void draw_hadamard(const ldp_question *question, uint32_t x, ldp_random *random, unsigned char *payload) {
    uint32_t rows = question->width - 1, block = x / rows, row = x % rows + 1;
    uint32_t half = ldp_truth_or_other(random, 2 * block, 2 * question->size, question->threshold);
    uint32_t column = ldp_word(random) & rows;
    column ^= (row & ((uint32_t)0 - row)) & mask_if((parity(column & row) ^ (half & 1)) != 0);
    ldp_to_big((half >> 1) * question->width + column, payload, question->payload_size);
}

static void draw_response(const ldp_question *question, uint32_t x, uint64_t threshold, ldp_random *random,
                          unsigned char *payload) {
    uint32_t reported = ldp_truth_or_other(random, x, question->choices, threshold);
    ldp_to_big(reported, payload, question->payload_size);
}

void ldp_draw_choice(const ldp_question *question, uint32_t x, ldp_random *random, uint64_t *work,
                     unsigned char *payload) {
    switch (question->mechanism) {
        case LDP_RANDOMIZED_RESPONSE:
        case LDP_MEMOIZED_RESPONSE: draw_response(question, x, question->threshold, random, payload); break;
        case LDP_OUE: draw_oue(question, x, random, payload); break;
        case LDP_SUE:
        case LDP_MEMOIZED_SUE: draw_sue(question, x, random, payload); break;
        case LDP_SUBSET_SELECTION: draw_subset(question, x, random, work, payload); break;
        case LDP_OLH: draw_hash(question, x, random, payload); break;
        default: draw_hadamard(question, x, random, payload); break;
    }
}

ldp_result ldp_draw_memoized(const ldp_question *question, const unsigned char *permanent, ldp_random *random,
                             unsigned char *payload) {
    if (question->mechanism == LDP_MEMOIZED_SUE) {
        biased_bits(question, question->again, random, payload);
        for (uint32_t i = 0; i < question->payload_size; i++) payload[i] ^= permanent[i];
    } else if (question->mechanism == LDP_MEMOIZED_RESPONSE) {
        uint32_t kept = (uint32_t)ldp_from_big(permanent, question->payload_size);
        draw_response(question, kept, question->again, random, payload);
    } else {
        return LDP_ERROR_MEMORY;
    }
    if (random->failed) memset(payload, 0, question->payload_size);
    return random->failed;
}
