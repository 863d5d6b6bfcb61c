/* Random bytes from a callback: length check, health tests, a pool, and unbiased integers. */
#include <string.h>

#include "internal.h"

#define WINDOW 512
#define REPETITION_CUTOFF 9
#define PROPORTION_CUTOFF 27

void ldp_wipe(void *memory, size_t size) {
    volatile unsigned char *byte = memory;
    while (size--) *byte++ = 0;
}

static void fail(ldp_random *random, ldp_result why) {
    random->failed = why;
    ldp_wipe(random->pool, sizeof random->pool);
    random->left = 0;
}

/* The repetition count test and the adaptive proportion test on each byte, in the order of reading. */
static void test(ldp_random *random) {
    for (size_t i = 0; i < sizeof random->pool; i++) {
        unsigned char byte = random->pool[i];
        random->run = (uint8_t)(random->run && byte == random->last ? random->run + 1 : 1);
        random->last = byte;
        if (random->seen == 0) random->first = byte, random->same = 0;
        random->same = (uint16_t)(random->same + (byte == random->first));
        random->seen = (uint16_t)((random->seen + 1) % WINDOW);
        if (random->run >= REPETITION_CUTOFF || random->same >= PROPORTION_CUTOFF) {
            fail(random, LDP_ERROR_RANDOM_BROKEN);
            return;
        }
    }
}

/* A stuck generator gives the same bytes at each call. Digests are kept, as the bytes are secrets. */
static void compare_calls(ldp_random *random) {
    unsigned char digest[32];
    ldp_sha256(random->pool, sizeof random->pool, digest);
    uint64_t fresh = ldp_from_big(digest, 8);
    unsigned known = random->calls < LDP_RECENT_CALLS ? random->calls : LDP_RECENT_CALLS;
    for (unsigned i = 0; i < known; i++)
        if (random->recent[i] == fresh) fail(random, LDP_ERROR_RANDOM_BROKEN);
    random->recent[random->calls % LDP_RECENT_CALLS] = fresh;
    random->calls = (uint16_t)(random->calls + 1 < 2 * LDP_RECENT_CALLS ? random->calls + 1 : LDP_RECENT_CALLS);
}

static void refill(ldp_random *random) {
    if (random->failed) return;
    if (random->fill(random->context, random->pool, sizeof random->pool) != sizeof random->pool) {
        fail(random, LDP_ERROR_RANDOM_SHORT);
        return;
    }
    random->left = sizeof random->pool;
    test(random);
    if (!random->failed) compare_calls(random);
}

/* Tests of the start: no short period, and no byte too often in either window. */
static void test_start(ldp_random *random) {
    for (size_t period = 1; period <= WINDOW; period++)
        if (!memcmp(random->pool, random->pool + period, WINDOW)) fail(random, LDP_ERROR_RANDOM_BROKEN);
    for (size_t start = 0; start < LDP_POOL_BYTES; start += WINDOW) {
        uint16_t count[256] = {0};
        for (size_t i = 0; i < WINDOW; i++)
            if (++count[random->pool[start + i]] >= PROPORTION_CUTOFF && !random->failed)
                fail(random, LDP_ERROR_RANDOM_BROKEN);
    }
}

ldp_result ldp_random_begin(ldp_random *random, ldp_fill fill, void *context) {
    memset(random, 0, sizeof *random);
    random->fill = fill;
    random->context = context;
    refill(random);
    if (!random->failed) test_start(random);
    ldp_wipe(random->pool, sizeof random->pool);
    random->left = 0;
    return random->failed;
}

void ldp_random_begin_recorded(ldp_random *random, ldp_fill fill, void *context) {
    memset(random, 0, sizeof *random);
    random->fill = fill;
    random->context = context;
    random->recorded = 1;
}

void ldp_random_end(ldp_random *random) {
    ldp_wipe(random, sizeof *random);
    random->failed = LDP_ERROR_RANDOM_SHORT;
}

void ldp_read(ldp_random *random, unsigned char *out, size_t size) {
    random->taken += size;
    if (random->recorded && !random->failed && random->fill(random->context, out, size) != size)
        random->failed = LDP_ERROR_RANDOM_SHORT;
    if (random->recorded && !random->failed) return;
    while (size) {
        if (!random->left) refill(random);
        if (random->failed) {
            memset(out, 0, size);
            return;
        }
        size_t part = size < random->left ? size : random->left;
        unsigned char *fresh = random->pool + sizeof random->pool - random->left;
        memcpy(out, fresh, part);
        ldp_wipe(fresh, part);
        random->left = (uint16_t)(random->left - part);
        out += part;
        size -= part;
    }
}

uint32_t ldp_word(ldp_random *random) {
    unsigned char bytes[4];
    ldp_read(random, bytes, 4);
    return (uint32_t)ldp_from_big(bytes, 4);
}

uint32_t ldp_below(ldp_random *random, uint32_t limit) {
    uint64_t ceiling = ((uint64_t)1 << 32) - ((uint64_t)1 << 32) % limit;
    for (;;) {
        uint32_t word = ldp_word(random);
        if (word < ceiling) return word % limit;
    }
}

uint32_t ldp_truth_or_other(ldp_random *random, uint32_t truth, uint32_t count, uint64_t threshold) {
    uint32_t truthful = mask_if(ldp_word(random) < threshold);
    uint32_t other = ldp_below(random, count - 1);
    other += other >= truth;
    return select_word(truthful, truth, other);
}
