/*
 * Opens damaged journals, and answers, sends and withdraws with them: fuzz_journal COUNT SEED JOURNAL. Half of the
 * damaged records get a right checksum. third.h has a study whose earlier versions the journal answers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ledger.c"
#include "third.h"

#define SHORT_REPORT 4

static unsigned char original[1 << 16], bytes[1 << 17];
static uint32_t original_size, size;
static uint64_t state;

static uint32_t below(uint32_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

static int32_t read_bytes(void *context, uint32_t offset, unsigned char *out, uint32_t count) {
    (void)context;
    if (offset >= size) return 0;
    if (count > size - offset) count = size - offset;
    memcpy(out, bytes + offset, count);
    return (int32_t)count;
}

static int32_t append_bytes(void *context, const unsigned char *more, uint32_t count) {
    (void)context;
    if (count > sizeof bytes - size) return 1;
    memcpy(bytes + size, more, count);
    size += count;
    return 0;
}

static int32_t sync_bytes(void *context) {
    (void)context;
    return 0;
}

static size_t fill(void *context, unsigned char *out, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) out[i] = (unsigned char)below(256);
    return count;
}

static ldp_result answer_third(ldp_ledger *ledger) {
    static uint64_t work[64];
    static unsigned char record[4096];
    static ldp_random random;
    const ldp_value values[2] = {{.kind = LDP_CHOICE, .choice = below(2)}, {.kind = LDP_NUMBER, .number = below(100)}};
    if (study_survey.work_words > 64 || study_survey.record_size > sizeof record) abort();
    ldp_random_begin_recorded(&random, fill, NULL);
    return ldp_answer(ledger, &study_survey, values, NULL, &random, work, record);
}

/* Fills `original` with the records of `bytes`, with short reports: damage then often hits what the ledger reads. */
static void shorten(void) {
    for (uint32_t at = 0; at < size;) {
        unsigned char *record = original + original_size, *body = bytes + at + HEAD_BYTES;
        uint32_t length = (uint32_t)ldp_from_big(bytes + at + 4, 4), kept = length;
        if (bytes[at + 2] == ANSWER) {
            kept -= (uint32_t)ldp_from_big(body + 42, 4) - SHORT_REPORT;
            ldp_to_big(SHORT_REPORT, body + 42, 4);
        }
        memcpy(record, bytes + at, HEAD_BYTES + kept);
        ldp_to_big(kept, record + 4, 4);
        ldp_to_big(checksum(~(uint64_t)0, record, HEAD_BYTES + kept), record + HEAD_BYTES + kept, CHECK_BYTES);
        original_size += HEAD_BYTES + kept + CHECK_BYTES;
        at += HEAD_BYTES + length + CHECK_BYTES;
    }
}

static void damage(void) {
    memcpy(bytes, original, original_size);
    size = original_size - (below(4) ? 0 : below(original_size));
    for (uint32_t i = below(4); i-- && size;) bytes[below(size)] = (unsigned char)below(256);
    /* A right checksum for the first records, as far as their sizes lead. */
    uint32_t at = 0;
    for (uint32_t i = below(5); i--;) {
        if (at + HEAD_BYTES > size) return;
        uint32_t length = (uint32_t)ldp_from_big(bytes + at + 4, 4);
        if (length > size || at + HEAD_BYTES + length + CHECK_BYTES > size) return;
        uint64_t crc = checksum(~(uint64_t)0, bytes + at, HEAD_BYTES + length);
        ldp_to_big(crc, bytes + at + HEAD_BYTES + length, CHECK_BYTES);
        at += HEAD_BYTES + length + CHECK_BYTES;
    }
}

int main(int count, char **words) {
    static const ldp_journal journal = {NULL, read_bytes, append_bytes, sync_bytes};
    FILE *file = count == 4 ? fopen(words[3], "rb") : NULL;
    unsigned opened = 0, reports = 0, answers = 0;
    if (!file) return 2;
    state = UINT64_C(0x9e3779b97f4a7c15) * (1 + strtoull(words[2], NULL, 10));
    size = (uint32_t)fread(bytes, 1, sizeof original, file);
    shorten();
    for (long left = atol(words[1]); left-- > 0;) {
        ldp_ledger ledger;
        ldp_parcel parcel = {.next = 0};
        damage();
        if (ldp_ledger_open(&ledger, &journal, below(2) ? UINT64_MAX : 5, 7, (int)below(2))) continue;
        opened++;
        if (below(2) && answer_third(&ledger) == LDP_OK) answers++;
        while (ldp_next(&ledger, &parcel) == LDP_OK) {
            unsigned char part[16];
            ldp_report_bytes(&ledger, &parcel, 0, part, parcel.size < 16 ? parcel.size : 16);
            reports++;
        }
        if (below(2)) ldp_done(&ledger, &parcel);
        if (!below(8)) ldp_withdraw(&ledger, &study_survey);
    }
    printf("%u opened, %u answers, %u reports\n", opened, answers, reports);
    return 0;
}
