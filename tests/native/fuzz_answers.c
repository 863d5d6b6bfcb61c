/*
 * Draws reports of arbitrary values by arbitrary random bytes: fuzz_answers COUNT SEED. every.h has all mechanisms.
 *
 * What ldp_check accepts gives a whole report. What it refuses is refused before a random byte is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "every.h"

#define MOST_FIELDS 64
#define MOST_PUBLIC 8

static uint64_t state;

static uint64_t word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t below(uint32_t limit) { return (uint32_t)(word() >> 16) % limit; }

/* Half of the bytes are 0 or 255, which mechanisms reject or carry. */
static size_t fill(void *context, unsigned char *out, size_t size) {
    (void)context;
    for (size_t i = 0; i < size; i++) {
        uint64_t drawn = word();
        out[i] = drawn >> 40 & 1 ? (unsigned char)(drawn >> 32) : drawn >> 41 & 1 ? 255 : 0;
    }
    return size;
}

static double number_near(const ldp_field *field) {
    double number = 0;
    uint64_t bits = word();
    switch (below(4)) {
    case 0: memcpy(&number, &bits, sizeof number); return number;
    case 1: return field->low;
    case 2: return field->high;
    default: return field->low + (field->high - field->low) * (double)below(1000) / 500;
    }
}

/* A value of the field's kind, and at times of none. */
static ldp_value value_of(const ldp_question *question, const ldp_field *field, int wild) {
    if (wild && !below(8)) return (ldp_value){below(5), (uint32_t)word(), number_near(field)};
    if (question->refusal && !below(4)) return (ldp_value){.kind = LDP_REFUSAL};
    if (field->choices) return (ldp_value){.kind = LDP_CHOICE, .choice = below(field->choices)};
    return (ldp_value){.kind = LDP_NUMBER, .number = number_near(field)};
}

int main(int count, char **words) {
    const ldp_study *study = &study_survey;
    ldp_value *values = calloc(MOST_FIELDS, sizeof *values);
    uint64_t *work = calloc(study->work_words, sizeof *work);
    unsigned char *permanent = malloc(study->permanent_size), secret[LDP_SECRET_BYTES];
    char *report = malloc(study->report_size);
    unsigned drawn = 0, refused = 0;
    if (count != 3) return 2;
    state = UINT64_C(0x9e3779b97f4a7c15) * (1 + strtoull(words[2], NULL, 10));
    for (long left = atol(words[1]); left-- > 0;) {
        int valid = 1, wild = below(2);
        unsigned at = 0;
        uint32_t chosen[MOST_PUBLIC];
        static ldp_random random;
        for (unsigned i = 0; i < study->question_count; i++) {
            const ldp_question *question = study->questions + i;
            if (at + question->field_count > MOST_FIELDS) abort();
            for (unsigned j = 0; j < question->field_count; j++)
                values[at + j] = value_of(question, question->fields + j, wild);
            valid &= ldp_check(question, values + at, NULL) == LDP_OK;
            at += question->field_count;
        }
        for (unsigned i = 0; i < study->public_count; i++) {
            chosen[i] = wild && !below(8) ? (uint32_t)word() : below(study->public_fields[i].count);
            valid &= chosen[i] < study->public_fields[i].count;
        }
        memset(permanent, 0, study->permanent_size);
        memset(report, 0, study->report_size);
        ldp_random_begin_recorded(&random, fill, NULL);
        ldp_result result = ldp_draw_report(study, values, chosen, &random, work, permanent, secret, report);
        if (result != (valid ? LDP_OK : LDP_ERROR_ANSWER) || (!valid && random.taken)) abort();
        if (valid && (memchr(report, 0, study->report_size) || report[0] != '{')) abort();
        *(valid ? &drawn : &refused) += 1;
    }
    free(values);
    free(work);
    free(permanent);
    free(report);
    printf("%u drawn, %u refused\n", drawn, refused);
    return 0;
}
