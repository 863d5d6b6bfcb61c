/* Numbers and records: places on grids, clipping, statistics and products. No branch or index depends on an answer. */
#include <string.h>

#include "internal.h"

#define LARGEST_SIGNED INT64_C(0x7fffffff)
#define UNIT_BITS 20
#define MULTIPLIER_BITS 60

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* A branch between two doubles would reveal which one was taken. */
static double select_number(int condition, double yes, double no) {
    uint64_t mask = (uint64_t)0 - (uint64_t)(condition != 0);
    uint64_t bits = bits_of(no) ^ ((bits_of(yes) ^ bits_of(no)) & mask);
    memcpy(&yes, &bits, sizeof yes);
    return yes;
}

ldp_result ldp_check(const ldp_question *question, const ldp_value *values, uint16_t *wrong) {
    for (uint16_t i = 0; i < question->field_count; i++) {
        const ldp_field *field = question->fields + i;
        uint32_t finite = mask_if((bits_of(values[i].number) >> 52 & 0x7ff) != 0x7ff);
        uint32_t number = mask_if(values[i].kind == LDP_NUMBER) & finite & mask_if(!field->choices);
        uint32_t choice = mask_if(values[i].kind == LDP_CHOICE) & mask_if(values[i].choice < field->choices);
        uint32_t refusal = mask_if(values[i].kind == LDP_REFUSAL) & mask_if(question->refusal);
        if (!(number | choice | refusal)) {
            if (wrong) *wrong = i;
            return LDP_ERROR_ANSWER;
        }
    }
    return LDP_OK;
}

/* The nearest of the grid points 0..levels, the same as grid_index of ldp_client/core/quantise.py. */
static int64_t place(double number, const ldp_field *field, uint32_t levels) {
    double share = (number - field->low) / (field->high - field->low);
    double beyond = select_number(number >= field->high, 1.0, share);
    double inside = select_number(number <= field->low, 0.0, beyond);
    inside = select_number(inside == inside, inside, 0.5);
    /* Rounded before the sum: a fused multiplication would round some halves otherwise. */
    volatile double scaled = inside * (double)levels;
    uint32_t index = (uint32_t)(scaled + 0.5);
    return (int64_t)select_word(mask_if(index < levels), index, levels);
}

/* A field between -unit and unit: a number by its bounds, a yes/no by its sign. */
static int64_t scaled(const ldp_field *field, const ldp_value *value, uint32_t unit) {
    if (field->choices) return (int64_t)unit * (2 * (int64_t)value->choice - 1);
    return place(value->number, field, 2 * unit) - (int64_t)unit;
}

/* Writes an integer in 4 bytes, at most ±(2^31 - 1). Its argument is noisy and so public. */
static void pack(int64_t value, unsigned char *out) {
    if (value > LARGEST_SIGNED) value = LARGEST_SIGNED;
    if (value < -LARGEST_SIGNED) value = -LARGEST_SIGNED;
    ldp_to_big((uint64_t)value & 0xffffffff, out, 4);
}

static const noise_law *law_of(const ldp_question *question) {
    return question->mechanism == LDP_LAPLACE ? &ldp_laplace_law : &ldp_normal_law;
}

void ldp_draw_number(const ldp_question *question, const ldp_value *value, ldp_random *random, unsigned char *payload) {
    const ldp_field *field = question->fields;
    int refused = value->kind == LDP_REFUSAL;
    /* A refusal is placed in the middle, in the same steps. */
    double number = select_number(refused, (field->low + field->high) / 2, value->number);
    uint32_t index = (uint32_t)place(number, field, question->levels);
    index = select_word(mask_if(refused), question->levels / 2, index);
    unsigned char bytes[12];
    ldp_read(random, bytes, sizeof bytes);
    uint64_t word = ldp_from_little(bytes, 8);
    pack((int64_t)index + ldp_noise(law_of(question), word, (uint32_t)ldp_from_little(bytes + 8, 4), random), payload);
    if (question->refusal)
        payload[4] = (unsigned char)ldp_truth_or_other(random, (uint32_t)refused, 2, question->threshold);
    ldp_wipe(bytes, sizeof bytes);
}

/* The integer square root, rounded down, in the same steps for all numbers. */
static uint64_t square_root(uint64_t square) {
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 62; bit; bit >>= 2) {
        uint64_t trial = root + bit, mask = (uint64_t)0 - (uint64_t)(square >= trial);
        square -= trial & mask;
        root = (root >> 1) + (bit & mask);
    }
    return root;
}

/* A product rounded towards 0, as in integers of unlimited size. The divisor is positive. */
static int64_t divided(int64_t value, uint64_t factor, uint64_t divisor) {
    uint64_t sign = (uint64_t)0 - (uint64_t)(value < 0);
    uint64_t magnitude = (((uint64_t)value ^ sign) - sign) * factor / divisor;
    return (int64_t)((magnitude ^ sign) - sign);
}

/* Shrinks a vector to a length of at most the radius; one that is shorter takes the same steps. */
static void clip(int64_t *vector, unsigned count, uint32_t radius) {
    uint64_t square = 0;
    for (unsigned i = 0; i < count; i++) square += (uint64_t)(vector[i] * vector[i]);
    /* The root rounded up, for a square of 0 too. */
    uint64_t length = square_root(square - (square > 0)) + (square > 0);
    uint64_t mask = (uint64_t)0 - (uint64_t)(length > radius);
    length = radius ^ ((radius ^ length) & mask);
    for (unsigned i = 0; i < count; i++) vector[i] = divided(vector[i], radius, length);
}

/* ⌊value · multiplier / 2^60 + ½⌋, through a product of 128 bits. */
static int64_t multiplied(int64_t value, uint64_t multiplier) {
    uint64_t sign = (uint64_t)0 - (uint64_t)(value < 0), size = ((uint64_t)value ^ sign) - sign;
    uint64_t a = size >> 32, b = size & 0xffffffff, c = multiplier >> 32, d = multiplier & 0xffffffff;
    uint64_t middle = a * d + (b * d >> 32), rest = b * c + (middle & 0xffffffff);
    uint64_t high = a * c + (middle >> 32) + (rest >> 32), low = rest << 32 | (b * d & 0xffffffff);
    /* Halves go up, so of a negative number its magnitude goes down. */
    uint64_t half = ((uint64_t)1 << (MULTIPLIER_BITS - 1)) - (sign & 1);
    high += low + half < low;
    low += half;
    uint64_t magnitude = high << (64 - MULTIPLIER_BITS) | low >> MULTIPLIER_BITS;
    return (int64_t)((magnitude ^ sign) - sign);
}

/*
 * Gaussian records and statistics. `work` holds the vector (constant, features, response), then 12 bytes of each draw:
 * all words, then all points.
 */
void ldp_draw_record(const ldp_question *question, const ldp_value *values, ldp_random *random, uint64_t *work,
                     unsigned char *payload) {
    unsigned features = question->field_count - 1u, last = features + 1;
    const ldp_field *response = question->fields + features;
    int statistics = question->mechanism == LDP_GAUSSIAN_STATISTICS, binary = response->choices != 0;
    int64_t *vector = (int64_t *)work;
    /* 1. The fields as integers. */
    vector[0] = question->weight;
    for (unsigned i = 0; i < features; i++) vector[i + 1] = scaled(question->fields + i, values + i, question->unit);
    vector[last] = scaled(response, values + features, question->response_unit);
    clip(vector + 1, features, question->radius);
    /* 2. The bytes of all draws. A record's yes/no response has no draw, but a byte. */
    unsigned draws = statistics ? question->payload_size / 4 : features + !binary;
    unsigned char *words = (unsigned char *)(vector + last + 1), *points = words + 8 * draws;
    ldp_read(random, words, 12 * (size_t)draws);
    /* 3. What is released, plus noise. */
    unsigned i = statistics ? 0 : 1, j = 1;
    for (unsigned draw = 0; draw < draws; draw++, words += 8, points += 4) {
        int64_t exact = vector[i];
        if (statistics) exact = multiplied(exact * vector[j], i == j ? question->diagonal : question->off_diagonal);
        uint32_t point = (uint32_t)ldp_from_little(points, 4);
        exact += ldp_noise(&ldp_normal_law, ldp_from_little(words, 8), point, random);
        pack(exact, payload + 4 * draw);
        /* The next pair i ≤ j of statistics, the next entry of a record. */
        if (!statistics || j == last) j = ++i;
        else j++;
    }
    if (!statistics && binary)
        payload[4 * draws] = (unsigned char)ldp_truth_or_other(random, values[features].choice, 2, question->threshold);
}

/* An entry of the vector of sampled products, from -2^20 to 2^20. */
static int64_t entry_of(const ldp_question *question, const ldp_value *values, uint16_t index) {
    const ldp_entry *entry = question->entries + index;
    const int64_t one = (int64_t)1 << UNIT_BITS;
    if (entry->field == LDP_CONSTANT) return one;
    const ldp_field *field = question->fields + entry->field;
    const ldp_value *value = values + entry->field;
    if (field->cuts) return one * (2 * (int64_t)(value->number >= field->cuts[entry->code]) - 1);
    if (entry->code) return one * (1 - 2 * (int64_t)parity(value->choice & entry->code));
    return scaled(field, value, (uint32_t)one);
}

void ldp_draw_products(const ldp_question *question, const ldp_value *values, ldp_random *random,
                       unsigned char *payload) {
    unsigned char bytes[8 + 8 * 4];
    unsigned signs = question->signs;
    uint32_t total = question->ends[question->blocks - 1];
    uint64_t ceiling = ((uint64_t)1 << 32) - ((uint64_t)1 << 32) % total;
    /* 1. The block, the roundings and the coin, whatever the answers are. */
    ldp_read(random, bytes, 8 + 8 * signs);
    uint32_t word = (uint32_t)ldp_from_big(bytes, 4), coin = (uint32_t)ldp_from_big(bytes + 4 + 8 * signs, 4);
    while (word >= ceiling) {
        word = coin;
        coin = ldp_word(random);
    }
    uint32_t flips = signs == 1 ? 1 : 1 + ldp_below(random, ((uint32_t)1 << signs) - 1);
    uint32_t block = 0;
    while (question->ends[block] <= word % total) block++;
    /* 2. The signs of the block's products, rounded without bias. */
    uint32_t pattern = 0;
    for (unsigned i = 0; i < signs; i++) {
        const ldp_product *product = question->products + (size_t)block * signs + i;
        int64_t exact = entry_of(question, values, product->i) * entry_of(question, values, product->j);
        int64_t rounding = (int64_t)(ldp_from_big(bytes + 4 + 8 * i, 8) >> (64 - 2 * UNIT_BITS - 1));
        pattern = pattern << 1 | (uint32_t)(rounding < ((int64_t)1 << 2 * UNIT_BITS) + exact);
    }
    /* 3. The pattern, or another one. */
    pattern ^= flips & mask_if(coin >= question->threshold);
    ldp_to_big((uint64_t)block << signs | pattern, payload, question->payload_size);
    ldp_wipe(bytes, sizeof bytes);
}

/* ---- All mechanisms ---- */

static int is_memoized(const ldp_question *question) {
    return question->mechanism == LDP_MEMOIZED_RESPONSE || question->mechanism == LDP_MEMOIZED_SUE;
}

ldp_result ldp_draw(const ldp_question *question, const ldp_value *values, ldp_random *random, uint64_t *work,
                    unsigned char *payload) {
    if (is_memoized(question)) return LDP_ERROR_MEMORY;
    if (ldp_check(question, values, NULL)) return LDP_ERROR_ANSWER;
    switch (question->mechanism) {
        case LDP_LAPLACE:
        case LDP_GAUSSIAN: ldp_draw_number(question, values, random, payload); break;
        case LDP_GAUSSIAN_RECORD:
        case LDP_GAUSSIAN_STATISTICS: ldp_draw_record(question, values, random, work, payload); break;
        case LDP_SAMPLED_PRODUCTS: ldp_draw_products(question, values, random, payload); break;
        default: ldp_draw_choice(question, ldp_place_of(question, values), random, work, payload); break;
    }
    if (work) ldp_wipe(work, question->work_words * sizeof *work);
    if (random->failed) memset(payload, 0, question->payload_size);
    return random->failed;
}

ldp_result ldp_draw_permanent(const ldp_question *question, const ldp_value *values, ldp_random *random,
                              unsigned char *permanent) {
    if (!is_memoized(question)) return LDP_ERROR_MEMORY;
    if (ldp_check(question, values, NULL)) return LDP_ERROR_ANSWER;
    ldp_draw_choice(question, ldp_place_of(question, values), random, NULL, permanent);
    if (random->failed) memset(permanent, 0, question->payload_size);
    return random->failed;
}
