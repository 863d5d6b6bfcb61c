/* A report's text: canonical JSON, as long as every other report of the study. */
#include <string.h>

#include "internal.h"

static char *put(char *text, const char *more) {
    size_t size = strlen(more);
    memcpy(text, more, size);
    return text + size;
}

/* The characters of "id":"payload", with the comma. */
static size_t entry_size(const ldp_question *question) {
    return strlen(question->id) + ldp_base64_size(question->payload_size) + 6;
}

/* Writes an asked question's payload among the others, which are ordered by id. Returns the end of all. */
static char *put_payload(const ldp_study *study, int only, unsigned index, const unsigned char *payload, char *text) {
    const ldp_question *question = study->questions + index;
    size_t before = 0, all = 0;
    for (unsigned i = 0; i < study->question_count; i++) {
        if (only >= 0 && only != (int)i) continue;
        all += entry_size(study->questions + i);
        if (strcmp(study->questions[i].id, question->id) < 0) before += entry_size(study->questions + i);
    }
    char *entry = put(put(put(text + before, "\""), question->id), "\":\"");
    ldp_base64(payload, question->payload_size, entry);
    entry = put(entry + ldp_base64_size(question->payload_size), "\"");
    if (before + entry_size(question) < all) put(entry, ",");
    return text + all - 1;
}

static ldp_result check_answers(const ldp_study *study, const ldp_value *values, const uint32_t *chosen) {
    for (unsigned i = 0; i < study->question_count; i++) {
        if (ldp_check(study->questions + i, values, NULL)) return LDP_ERROR_ANSWER;
        values += study->questions[i].field_count;
    }
    for (unsigned i = 0; i < study->public_count; i++)
        if (!chosen || chosen[i] >= study->public_fields[i].count) return LDP_ERROR_ANSWER;
    return LDP_OK;
}

ldp_result ldp_draw_report(const ldp_study *study, const ldp_value *values, const uint32_t *chosen, ldp_random *random,
                           uint64_t *work, unsigned char *permanent, unsigned char secret[LDP_SECRET_BYTES],
                           char *report) {
    if (check_answers(study, values, chosen)) return LDP_ERROR_ANSWER;
    char *id = put(report, study->head), *payloads = put(id + LDP_ID_CHARACTERS - 1, "\",\"payloads\":{");
    char *end = payloads;
    unsigned char *payload = (unsigned char *)work;
    ldp_result result = LDP_OK;
    /* 1. The noise, in the study's order. */
    int only = study->sample_one_question ? (int)ldp_below(random, study->question_count) : -1;
    for (unsigned i = 0; i < study->question_count && !result; i++) {
        const ldp_question *question = study->questions + i;
        uint64_t *scratch = work + (question->payload_size + 7) / 8;
        if (only < 0 || only == (int)i) {
            if (question->memory) {
                if (!*permanent) result = ldp_draw_permanent(question, values, random, permanent + 1);
                *permanent = 1;
                if (!result) result = ldp_draw_memoized(question, permanent + 1, random, payload);
            } else {
                result = ldp_draw(question, values, random, scratch, payload);
            }
            if (!result) end = put_payload(study, only, i, payload, payloads);
        }
        if (question->memory) permanent += 1 + question->payload_size;
        values += question->field_count;
    }
    /* 2. The secret, and the id that it gives. */
    ldp_read(random, secret, LDP_SECRET_BYTES);
    if (random->failed) result = random->failed;
    ldp_wipe(work, study->work_words * sizeof *work);
    if (result) return result;
    char digits[LDP_ID_CHARACTERS];
    ldp_report_id(secret, digits);
    put(id, digits);
    /* 3. Public fields, and spaces to the length of all reports. */
    end = put(end, "}");
    for (unsigned i = 0; i < study->public_count; i++) {
        end = put(put(put(end, i ? ",\"" : ",\"public\":{\""), study->public_fields[i].id), "\":");
        end = put(end, study->public_fields[i].values[chosen[i]]);
    }
    end = put(put(end, study->public_count ? "}" : ""), study->tail);
    memset(end, ' ', study->report_size - (size_t)(end - report));
    return LDP_OK;
}
