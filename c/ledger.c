/*
 * The device's memory in an append-only journal.
 *
 * A record has a head of 8 bytes (two letters, the kind, a zero, the size of the body), a body, and a CRC-64 of both.
 * Integers are big-endian. A record whose bytes were cut off is followed by a SKIP record, which states their number.
 *
 *   BUDGET    epsilon 8, delta 8
 *   ANSWER    study 16, version 4, epsilon 8, delta 8, questions 2, permanent 4, report 4, secret 16, id 32,
 *             of each question its key 16, memory 16 and the size 4 of its permanent answer (0 if it has none),
 *             permanent answers with a byte before each, report
 *   DONE      id 32, withdrawn 1
 *   WITHDRAW  study 16
 *   SKIP      size 4
 */
#include <string.h>

#include "internal.h"

enum { BUDGET = 1, ANSWER, DONE, WITHDRAW, SKIP };

#define HEAD_BYTES 8
#define CHECK_BYTES 8
#define KEY_BYTES 16
#define ID_BYTES 32
#define FIXED_BYTES 94
#define QUESTION_BYTES 36
#define CHUNK 64
#define LARGEST_BODY ((uint32_t)1 << 24)

/* The fixed part of an ANSWER, and where its parts begin. */
typedef struct answer {
    unsigned char fixed[FIXED_BYTES];
    uint32_t version, questions, report_size, keys, permanent, report;
} answer;

static uint64_t checksum(uint64_t crc, const unsigned char *bytes, uint32_t size) {
    while (size--) {
        crc ^= *bytes++;
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (UINT64_C(0xc96c5795d7870f42) & ((uint64_t)0 - (crc & 1)));
    }
    return crc;
}

/* Reads exactly `size` bytes. Returns 1; 0 at the end of the journal, and after an error, which closes the ledger. */
static int fetch(ldp_ledger *ledger, uint32_t offset, unsigned char *out, uint32_t size) {
    int32_t count = ledger->journal->read(ledger->journal->context, offset, out, size);
    if (count < 0) ledger->is_open = 0;
    return count == (int32_t)size;
}

/* The kind of a whole record at an offset, and the size of its body; 0 if there is none. */
static int record_at(ldp_ledger *ledger, uint32_t offset, uint32_t *size) {
    unsigned char head[HEAD_BYTES], chunk[CHUNK];
    if (!fetch(ledger, offset, head, HEAD_BYTES) || head[0] != 'L' || head[1] != 'K' || head[3]) return 0;
    *size = (uint32_t)ldp_from_big(head + 4, 4);
    if (head[2] < BUDGET || head[2] > SKIP || *size > LARGEST_BODY) return 0;
    uint64_t crc = checksum(~(uint64_t)0, head, HEAD_BYTES);
    uint32_t done = 0;
    while (done < *size) {
        uint32_t part = *size - done < CHUNK ? *size - done : CHUNK;
        if (!fetch(ledger, offset + HEAD_BYTES + done, chunk, part)) return 0;
        crc = checksum(crc, chunk, part);
        done += part;
    }
    if (!fetch(ledger, offset + HEAD_BYTES + done, chunk, CHECK_BYTES)) return 0;
    return ldp_from_big(chunk, CHECK_BYTES) == crc ? head[2] : 0;
}

/*
 * The next record from *offset on: its kind, with *offset at its body; 0 at the end; -1 if the journal is damaged.
 * A whole record behind other bytes is a damage, unless it is a SKIP record of their number.
 */
static int next_record(ldp_ledger *ledger, uint32_t *offset, uint32_t *size) {
    unsigned char head[HEAD_BYTES];
    for (uint32_t start = *offset; *offset < ledger->end; (*offset)++) {
        int kind = record_at(ledger, *offset, size);
        if (!kind && !fetch(ledger, *offset, head, 1)) return 0;
        if (!kind) continue;
        uint32_t before = *offset - start;
        *offset += HEAD_BYTES;
        if (kind == SKIP) return fetch(ledger, *offset, head, 4) && ldp_from_big(head, 4) == before ? kind : -1;
        return before ? -1 : kind;
    }
    return 0;
}

static int read_answer(ldp_ledger *ledger, uint32_t body, answer *out) {
    if (!fetch(ledger, body, out->fixed, FIXED_BYTES)) return 0;
    out->version = (uint32_t)ldp_from_big(out->fixed + 16, 4);
    out->questions = (uint32_t)ldp_from_big(out->fixed + 36, 2);
    out->report_size = (uint32_t)ldp_from_big(out->fixed + 42, 4);
    out->keys = body + FIXED_BYTES;
    out->permanent = out->keys + QUESTION_BYTES * out->questions;
    out->report = out->permanent + (uint32_t)ldp_from_big(out->fixed + 38, 4);
    return 1;
}

/* Completes a record whose body is in place behind its head, appends it, and makes it durable. */
static ldp_result commit(ldp_ledger *ledger, int kind, unsigned char *record, uint32_t size) {
    const ldp_journal *journal = ledger->journal;
    uint32_t whole = HEAD_BYTES + size + CHECK_BYTES;
    record[0] = 'L';
    record[1] = 'K';
    record[2] = (unsigned char)kind;
    record[3] = 0;
    ldp_to_big(size, record + 4, 4);
    ldp_to_big(checksum(~(uint64_t)0, record, HEAD_BYTES + size), record + HEAD_BYTES + size, CHECK_BYTES);
    if (journal->append(journal->context, record, whole) || journal->sync(journal->context)) {
        ledger->is_open = 0; /* whether the record is durable is known after opening again */
        return LDP_ERROR_STORAGE;
    }
    ledger->end += whole;
    return LDP_OK;
}

/* Adds up what the records say, until the end or cut off bytes. */
static ldp_result replay(ldp_ledger *ledger) {
    uint32_t offset = 0, size = 0;
    unsigned char body[KEY_BYTES];
    answer given;
    for (;;) {
        uint32_t start = offset;
        int kind = next_record(ledger, &offset, &size);
        if (!ledger->is_open) return LDP_ERROR_STORAGE;
        if (kind < 0) return LDP_ERROR_JOURNAL;
        if (!kind) {
            ledger->end = start;
            return LDP_OK;
        }
        if (kind == BUDGET && fetch(ledger, offset, body, KEY_BYTES)) {
            ledger->most_epsilon = ldp_from_big(body, 8);
            ledger->most_delta = ldp_from_big(body + 8, 8);
        } else if (kind == ANSWER && read_answer(ledger, offset, &given)) {
            ledger->epsilon += ldp_from_big(given.fixed + 20, 8);
            ledger->delta += ldp_from_big(given.fixed + 28, 8);
        }
        offset += size + CHECK_BYTES;
    }
}

ldp_result ldp_ledger_open(ldp_ledger *ledger, const ldp_journal *journal, uint64_t epsilon, uint64_t delta,
                           int raise) {
    unsigned char record[HEAD_BYTES + 16 + CHECK_BYTES], byte;
    memset(ledger, 0, sizeof *ledger);
    ledger->journal = journal;
    ledger->is_open = 1;
    ledger->end = UINT32_MAX;
    ledger->most_epsilon = ledger->most_delta = UINT64_MAX;
    /* 1. What a killed process appended is durable only now. */
    if (journal->sync(journal->context)) return LDP_ERROR_STORAGE;
    ldp_result result = replay(ledger);
    /* 2. Bytes that were cut off are skipped for ever. */
    uint32_t cut = 0;
    while (!result && ledger->is_open && fetch(ledger, ledger->end + cut, &byte, 1)) cut++;
    if (!result && !ledger->is_open) result = LDP_ERROR_STORAGE;
    ledger->end += cut;
    ldp_to_big(cut, record + HEAD_BYTES, 4);
    if (!result && cut) result = commit(ledger, SKIP, record, 4);
    /* 3. The budget. */
    if (!raise && epsilon > ledger->most_epsilon) epsilon = ledger->most_epsilon;
    if (!raise && delta > ledger->most_delta) delta = ledger->most_delta;
    ldp_to_big(epsilon, record + HEAD_BYTES, 8);
    ldp_to_big(delta, record + HEAD_BYTES + 8, 8);
    if (!result && (epsilon != ledger->most_epsilon || delta != ledger->most_delta))
        result = commit(ledger, BUDGET, record, 16);
    ledger->most_epsilon = epsilon;
    ledger->most_delta = delta;
    ledger->is_open = result == LDP_OK;
    return result;
}

/*
 * Whether a study may be answered, from all earlier answers. Copies permanent answers to where ldp_draw_report expects
 * them, each behind a 1.
 */
static ldp_result recall(ldp_ledger *ledger, const ldp_study *study, unsigned char *permanent) {
    uint32_t offset = 0, size = 0;
    unsigned char names[QUESTION_BYTES];
    answer given;
    for (int kind; (kind = next_record(ledger, &offset, &size)) != 0; offset += size + CHECK_BYTES) {
        if (kind < 0) return LDP_ERROR_JOURNAL;
        if (kind == WITHDRAW && fetch(ledger, offset, names, KEY_BYTES) && !memcmp(names, study->key, KEY_BYTES))
            for (uint32_t i = 0; i < study->permanent_size; i++)
                if (permanent[i]) return LDP_ERROR_ANSWERED; /* a permanent answer that was withdrawn */
        if (kind != ANSWER || !read_answer(ledger, offset, &given)) continue;
        if (memcmp(given.fixed, study->key, KEY_BYTES)) continue;
        if (given.version >= study->version) return LDP_ERROR_ANSWERED;
        for (uint32_t i = 0, kept = given.permanent; i < given.questions; i++) {
            if (!fetch(ledger, given.keys + i * QUESTION_BYTES, names, QUESTION_BYTES)) break;
            uint32_t stored = (uint32_t)ldp_from_big(names + 2 * KEY_BYTES, 4);
            unsigned char *own = permanent;
            for (unsigned j = 0; j < study->question_count; j++) {
                const ldp_question *question = study->questions + j;
                if (!memcmp(names, question->key, KEY_BYTES)) {
                    if (!question->memory || memcmp(names + KEY_BYTES, question->memory, KEY_BYTES) ||
                        stored != question->payload_size || !fetch(ledger, kept, own, 1 + stored))
                        return LDP_ERROR_ANSWERED;
                }
                if (question->memory) own += 1 + question->payload_size;
            }
            if (stored) kept += 1 + stored;
        }
    }
    return ledger->is_open ? LDP_OK : LDP_ERROR_STORAGE;
}

static uint64_t joined(uint64_t a, uint64_t b, int largest) {
    if (largest) return a > b ? a : b;
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

ldp_result ldp_answer(ldp_ledger *ledger, const ldp_study *study, const ldp_value *values, const uint32_t *chosen,
                      ldp_random *random, uint64_t *work, unsigned char *record) {
    if (!ledger->is_open) return LDP_ERROR_STORAGE;
    unsigned char *fixed = record + HEAD_BYTES, *keys = fixed + FIXED_BYTES;
    unsigned char *permanent = keys + QUESTION_BYTES * study->question_count, *own = permanent;
    unsigned char *report = permanent + study->permanent_size, *secret = fixed + 46;
    uint64_t epsilon = 0, delta = 0;
    memset(record, 0, study->record_size);
    /* 1. Answer once. */
    ldp_result result = recall(ledger, study, permanent);
    /* 2. The cost of what is not paid for yet, and what the record says of each question. */
    for (unsigned i = 0; i < study->question_count && !result; i++, keys += QUESTION_BYTES) {
        const ldp_question *question = study->questions + i;
        memcpy(keys, question->key, KEY_BYTES);
        if (!question->memory || !*own) {
            epsilon = joined(epsilon, question->epsilon, study->sample_one_question);
            delta = joined(delta, question->delta, study->sample_one_question);
        }
        if (!question->memory) continue;
        memcpy(keys + KEY_BYTES, question->memory, KEY_BYTES);
        ldp_to_big(question->payload_size, keys + 2 * KEY_BYTES, 4);
        own += 1 + question->payload_size;
    }
    if (!result && (joined(ledger->epsilon, epsilon, 0) > ledger->most_epsilon ||
                    joined(ledger->delta, delta, 0) > ledger->most_delta))
        result = LDP_ERROR_BUDGET;
    /* 3. The noise. */
    if (!result) result = ldp_draw_report(study, values, chosen, random, work, permanent, secret, (char *)report);
    /* 4. Spend, permanent answers and report in one record. */
    if (!result) {
        char id[LDP_ID_CHARACTERS];
        memcpy(fixed, study->key, KEY_BYTES);
        ldp_to_big(study->version, fixed + 16, 4);
        ldp_to_big(epsilon, fixed + 20, 8);
        ldp_to_big(delta, fixed + 28, 8);
        ldp_to_big(study->question_count, fixed + 36, 2);
        ldp_to_big(study->permanent_size, fixed + 38, 4);
        ldp_to_big(study->report_size, fixed + 42, 4);
        ldp_report_id(secret, id);
        memcpy(fixed + 62, id, ID_BYTES);
        result = commit(ledger, ANSWER, record, study->record_size - HEAD_BYTES - CHECK_BYTES);
    }
    if (!result) {
        ledger->epsilon += epsilon;
        ledger->delta += delta;
    }
    ldp_wipe(record, study->record_size);
    return result;
}

ldp_result ldp_next(ldp_ledger *ledger, ldp_parcel *parcel) {
    if (!ledger->is_open) return LDP_ERROR_STORAGE;
    uint32_t size = 0, start = parcel->next > ledger->first ? parcel->next : ledger->first, body_at = start;
    unsigned char body[ID_BYTES + 1];
    answer given;
    for (int kind; (kind = next_record(ledger, &body_at, &size)) != 0; start = body_at += size + CHECK_BYTES) {
        if (kind < 0) return LDP_ERROR_JOURNAL;
        if (kind != ANSWER || !read_answer(ledger, body_at, &given)) continue;
        /* What became of this report, from the records behind it. */
        int sent = 0, deleted = 0;
        uint32_t offset = body_at + size + CHECK_BYTES, length = 0;
        parcel->withdrawn = 0;
        for (int later; (later = next_record(ledger, &offset, &length)) != 0; offset += length + CHECK_BYTES) {
            if (later < 0) return LDP_ERROR_JOURNAL;
            if (later == WITHDRAW && fetch(ledger, offset, body, KEY_BYTES) && !memcmp(body, given.fixed, KEY_BYTES))
                parcel->withdrawn = 1;
            if (later != DONE || !fetch(ledger, offset, body, ID_BYTES + 1)) continue;
            if (memcmp(body, given.fixed + 62, ID_BYTES)) continue;
            if (body[ID_BYTES]) deleted = 1;
            else sent = 1;
        }
        if (!ledger->is_open) return LDP_ERROR_STORAGE;
        if (parcel->withdrawn ? deleted : sent) continue;
        memcpy(parcel->study, given.fixed, KEY_BYTES);
        memcpy(parcel->secret, given.fixed + 46, LDP_SECRET_BYTES);
        memcpy(parcel->id, given.fixed + 62, ID_BYTES);
        parcel->id[ID_BYTES] = 0;
        parcel->size = given.report_size;
        parcel->offset = given.report;
        if (!parcel->next) ledger->first = start; /* all before it are done */
        parcel->next = body_at + size + CHECK_BYTES;
        return LDP_OK;
    }
    return ledger->is_open ? LDP_NOTHING : LDP_ERROR_STORAGE;
}

ldp_result ldp_report_bytes(ldp_ledger *ledger, const ldp_parcel *parcel, uint32_t start, unsigned char *out,
                            uint32_t size) {
    return ledger->is_open && fetch(ledger, parcel->offset + start, out, size) ? LDP_OK : LDP_ERROR_STORAGE;
}

ldp_result ldp_done(ldp_ledger *ledger, const ldp_parcel *parcel) {
    unsigned char record[HEAD_BYTES + ID_BYTES + 1 + CHECK_BYTES];
    if (!ledger->is_open) return LDP_ERROR_STORAGE;
    memcpy(record + HEAD_BYTES, parcel->id, ID_BYTES);
    record[HEAD_BYTES + ID_BYTES] = parcel->withdrawn;
    return commit(ledger, DONE, record, ID_BYTES + 1);
}

ldp_result ldp_withdraw(ldp_ledger *ledger, const ldp_study *study) {
    unsigned char record[HEAD_BYTES + KEY_BYTES + CHECK_BYTES];
    if (!ledger->is_open) return LDP_ERROR_STORAGE;
    memcpy(record + HEAD_BYTES, study->key, KEY_BYTES);
    ledger->first = 0; /* reports that were sent must be deleted */
    return commit(ledger, WITHDRAW, record, KEY_BYTES);
}
