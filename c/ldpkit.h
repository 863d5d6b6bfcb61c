/**
 * @file ldpkit.h
 * The device core of ldpkit in C99: noisy answers, reports and their bytes, for phones and boards.
 *
 * The core never allocates memory, has no global state, and does no input or output. It gets random bytes from a
 * callback. It adds noise to answers, and writes the text of a report. A question is a table of integers.
 * `ldpkit compile study.json --to c` writes this table, so the core computes no logarithm and no privacy level.
 *
 * The same random bytes give the same payload as in Python and JavaScript. docs/payloads.md and js/ state the laws.
 * docs/native.md explains the use from `ldpkit compile` to a report that a collector accepts.
 *
 * Rules for all functions:
 * - Pointers must not be null, except where the text says so. Sizes are in bytes, except `work_words`.
 * - A function that returns ldp_result returns LDP_OK, or an error. After an error its outputs hold no secret.
 * - The core checks all answers before it reads the first random byte.
 * - Objects are independent: two threads may use the core if they share no ldp_random and no buffer.
 * - Numbers are IEEE 754 doubles of 64 bits, used only to find an answer's place on the grid. Noise is in integers.
 */
#ifndef LDPKIT_H
#define LDPKIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The result of a function. Errors are negative. */
typedef enum ldp_result {
    LDP_OK = 0,
    LDP_ERROR_ANSWER = -1,        /**< An answer is missing, of another kind, infinite, NaN or no listed choice. */
    LDP_ERROR_RANDOM_SHORT = -2,  /**< The source gave fewer or more bytes than asked. */
    LDP_ERROR_RANDOM_BROKEN = -3, /**< The source repeats itself. Do not use this device for private answers. */
    LDP_ERROR_MEMORY = -4,        /**< A memoized question needs its permanent answer: see ldp_draw_memoized. */
    LDP_ERROR_ANSWERED = -5,      /**< A question was answered before, or a memoized one in this version. */
    LDP_ERROR_BUDGET = -6,        /**< The answers would exceed the lifetime budget of epsilon or delta. */
    LDP_ERROR_JOURNAL = -7,       /**< The journal is damaged, or of another layout. Do not answer with it. */
    LDP_ERROR_STORAGE = -8,       /**< A callback failed. Open the ledger again before its next use. */
    LDP_NOTHING = 1,              /**< No report waits. */
} ldp_result;

/* ---- Random bytes ------------------------------------------------------------------------------------------- */

/**
 * Fills `out` with `size` secret random bytes of the operating system or of a hardware generator.
 *
 * @param context the pointer given to ldp_random_begin.
 * @param out     where the bytes go.
 * @param size    how many bytes are asked.
 * @return how many bytes were written. Any number other than `size` is an error.
 */
typedef size_t (*ldp_fill)(void *context, unsigned char *out, size_t size);

/** Bytes that one call of the callback gives. */
#define LDP_POOL_BYTES 1024
/** Digests of recent calls that are compared. */
#define LDP_RECENT_CALLS 8

/**
 * A tested source of random bytes, about 1.2 KB. Its members are private, except `taken`.
 *
 * A child process of fork must begin its own: two processes with one pool would draw the same noise.
 */
typedef struct ldp_random {
    ldp_fill fill;
    void *context;
    uint64_t taken; /**< How many bytes mechanisms have read since ldp_random_begin. */
    ldp_result failed;
    uint8_t recorded;
    uint8_t last, run;          /* repetition count test */
    uint8_t first;              /* adaptive proportion test */
    uint16_t seen, same;
    uint16_t left;              /* unread bytes at the end of the pool */
    uint16_t calls;
    uint64_t recent[LDP_RECENT_CALLS];
    unsigned char pool[LDP_POOL_BYTES];
} ldp_random;

/**
 * Starts a source, and tests its first 1,024 bytes, which are then discarded.
 *
 * The tests are those of NIST SP 800-90B, 4.4, with bytes as samples of 8 bits: 9 equal bytes in a row, or 27 times
 * the first byte of a window of 512, break a source. They run on every byte. At the start no byte may occur 27 times in
 * 512, and the bytes may not repeat with a period up to 512. Later, a call may not return the bytes of one of the
 * last 8 calls. False alarms are rarer than 2^-50. No test can detect a source that an attacker can compute.
 *
 * @param random  the source to start.
 * @param fill    the callback.
 * @param context passed to the callback; may be null.
 * @return LDP_OK, LDP_ERROR_RANDOM_SHORT or LDP_ERROR_RANDOM_BROKEN. A source that failed stays refused.
 */
ldp_result ldp_random_begin(ldp_random *random, ldp_fill fill, void *context);

/**
 * Starts a source of recorded bytes for test vectors: no tests, no pool. NEVER use it for real answers.
 *
 * @param random  the source to start.
 * @param fill    the callback, which gets exactly the requests of the mechanism.
 * @param context passed to the callback; may be null.
 */
void ldp_random_begin_recorded(ldp_random *random, ldp_fill fill, void *context);

/**
 * Wipes the pool. Call it when no more answers follow; ldp_random_begin starts the source again.
 *
 * @param random the source.
 */
void ldp_random_end(ldp_random *random);

/**
 * Overwrites memory in a way that a compiler does not remove.
 *
 * @param memory what to overwrite.
 * @param size   how many bytes.
 */
void ldp_wipe(void *memory, size_t size);

/* ---- Questions: tables that `ldpkit compile` writes ---------------------------------------------------------- */

/** How a question adds noise. The values are part of the ABI. */
typedef enum ldp_mechanism {
    LDP_RANDOMIZED_RESPONSE = 1,
    LDP_OUE = 2,
    LDP_SUE = 3,
    LDP_SUBSET_SELECTION = 4,
    LDP_OLH = 5,
    LDP_HADAMARD = 6,
    LDP_MEMOIZED_RESPONSE = 7,
    LDP_MEMOIZED_SUE = 8,
    LDP_LAPLACE = 9,
    LDP_GAUSSIAN = 10,
    LDP_GAUSSIAN_RECORD = 11,
    LDP_GAUSSIAN_STATISTICS = 12,
    LDP_SAMPLED_PRODUCTS = 13
} ldp_mechanism;

/** What an ldp_value holds. Zeroed memory is a missing answer, which every question refuses. */
typedef enum ldp_kind {
    LDP_MISSING = 0,
    LDP_NUMBER = 1, /**< `number` holds the answer. */
    LDP_CHOICE = 2, /**< `choice` holds the index of the choice from 0. No is 0, yes is 1. */
    LDP_REFUSAL = 3 /**< "Prefer not to say", for a question that offers it. */
} ldp_kind;

/** One answer, or one field of a record. */
typedef struct ldp_value {
    uint32_t kind; /**< An ldp_kind. */
    uint32_t choice;
    double number; /**< In the question's unit. Beyond a bound it counts as the bound. */
} ldp_value;

/** A number, a yes/no or a choice that a question asks; of a record a feature or the response. */
typedef struct ldp_field {
    const char *id;     /**< The question's id, or the field's. */
    uint32_t choices;   /**< The number of choices without refusal; 2 for a yes/no; 0 for a number. */
    double low, high;   /**< A number's bounds. */
    const double *cuts; /**< The boundaries of a number that is cut into bins, else null. */
} ldp_field;

/** One entry of the vector of sampled products: a field, and which of its entries. */
typedef struct ldp_entry {
    uint16_t field; /**< The index of the field. LDP_CONSTANT: the entry 1. */
    uint16_t code;  /**< The index of the cut, or the number of the choice's character. */
} ldp_entry;

/** The field of the constant entry. */
#define LDP_CONSTANT UINT16_C(0xffff)

/** A product of two entries, by their indices. */
typedef struct ldp_product {
    uint16_t i, j;
} ldp_product;

/** A question and the integers of its law, as js/mechanisms computes them. */
typedef struct ldp_question {
    const char *id;
    ldp_mechanism mechanism;
    const ldp_field *fields; /**< One field; of a record the features, then the response. */
    uint16_t field_count;
    uint8_t refusal;       /**< Whether "prefer not to say" is an answer. */
    uint32_t payload_size; /**< The bytes of a payload. */
    uint32_t work_words;   /**< The words of 64 bits that ldp_draw needs. */
    uint32_t choices;      /**< n, with the refusal. */
    uint64_t threshold;    /**< T, over 2^32. */
    uint64_t again;        /**< T of a memoized question's second stage. */
    uint32_t size;         /**< d of a subset, g of hashes, B of Hadamard blocks. */
    uint32_t width;        /**< w of a Hadamard block. */
    uint32_t levels;       /**< N of a number. */
    uint32_t unit;         /**< The integers for a scaled feature of 1. */
    uint32_t response_unit; /**< The same of the response. */
    uint32_t radius;        /**< The longest vector of features. */
    uint32_t weight;        /**< w of Gaussian statistics. */
    uint64_t diagonal;      /**< A of Gaussian statistics. */
    uint64_t off_diagonal;  /**< B of Gaussian statistics. */
    const ldp_entry *entries;    /**< Of sampled products. */
    const ldp_product *products; /**< `signs` products for each block, one block after the other. */
    const uint32_t *ends;        /**< The weights of the blocks, added up. */
    uint32_t blocks;
    uint8_t signs;         /**< k, the products in a report. */
    const unsigned char *key;    /**< 16 bytes that name the collector, the study and the question. */
    const unsigned char *memory; /**< Of a memoized question: 16 bytes that name its words and its noise. */
    uint64_t epsilon;            /**< Its cost in units of 2^-32 nats, rounded up. */
    uint64_t delta;              /**< Its cost in units of 2^-63, rounded up. */
} ldp_question;

/* ---- Payloads ------------------------------------------------------------------------------------------------ */

/**
 * Checks the answer of a question. It reads no random byte.
 *
 * @param question the question.
 * @param values   `field_count` values.
 * @param wrong    receives the index of the first field that does not fit; may be null.
 * @return LDP_OK or LDP_ERROR_ANSWER.
 */
ldp_result ldp_check(const ldp_question *question, const ldp_value *values, uint16_t *wrong);

/**
 * Draws the noisy payload of an answer.
 *
 * Each call draws new noise: a second payload of the same answer reveals more. Draw once, store the report, and send
 * the same bytes until the collector confirms them.
 *
 * @param question a question that is not memoized.
 * @param values   `field_count` values.
 * @param random   a started source.
 * @param work     scratch memory of `work_words` words, wiped afterwards; may be null if `work_words` is 0.
 * @param payload  receives `payload_size` bytes.
 * @return LDP_OK; LDP_ERROR_ANSWER, before the first byte is read; LDP_ERROR_MEMORY for a memoized question; an error
 *         of the source, after which `payload` holds zeros.
 */
ldp_result ldp_draw(const ldp_question *question, const ldp_value *values, ldp_random *random, uint64_t *work,
                    unsigned char *payload);

/**
 * Draws the permanent answer of a memoized question. Do this once in a person's life, and store it durably.
 *
 * @param question  a memoized question.
 * @param values    one value.
 * @param random    a started source.
 * @param permanent receives `payload_size` bytes.
 * @return as ldp_draw; LDP_ERROR_MEMORY if the question is not memoized.
 */
ldp_result ldp_draw_permanent(const ldp_question *question, const ldp_value *values, ldp_random *random,
                              unsigned char *permanent);

/**
 * Draws a payload of a memoized question from the permanent answer, never from the answer itself.
 *
 * @param question  a memoized question.
 * @param permanent the bytes of ldp_draw_permanent.
 * @param random    a started source.
 * @param payload   receives `payload_size` bytes; must not be `permanent`.
 * @return as ldp_draw_permanent.
 */
ldp_result ldp_draw_memoized(const ldp_question *question, const unsigned char *permanent, ldp_random *random,
                             unsigned char *payload);

/* ---- Encodings ------------------------------------------------------------------------------------------------ */

/** Bytes of a report's secret, and of its id. */
#define LDP_SECRET_BYTES 16
/** Characters of a report's id with the zero at its end. */
#define LDP_ID_CHARACTERS 33

/**
 * Computes SHA-256.
 *
 * @param data   the bytes.
 * @param size   how many.
 * @param digest receives 32 bytes.
 */
void ldp_sha256(const void *data, size_t size, unsigned char digest[32]);

/**
 * Writes bytes in base64: the standard alphabet, with padding, without a zero at the end.
 *
 * @param data the bytes.
 * @param size how many.
 * @param text receives ldp_base64_size(size) characters.
 */
void ldp_base64(const unsigned char *data, size_t size, char *text);

/**
 * Returns how many characters ldp_base64 writes.
 *
 * @param size the number of bytes.
 */
size_t ldp_base64_size(size_t size);

/**
 * Computes a report's id from its secret. The secret gives the right to delete the report; the id does not reveal it.
 *
 * @param secret the secret.
 * @param id     receives 32 hexadecimal digits and a zero.
 */
void ldp_report_id(const unsigned char secret[LDP_SECRET_BYTES], char id[LDP_ID_CHARACTERS]);

/* ---- Reports ------------------------------------------------------------------------------------------------- */

/** A public field, which leaves without noise. */
typedef struct ldp_public {
    const char *id;
    const char *const *values; /**< Each value as JSON. */
    uint32_t count;
} ldp_public;

/** One version of a study, as `ldpkit compile` writes it. */
typedef struct ldp_study {
    const char *id;
    uint32_t version;
    const char *digest;       /**< 64 hexadecimal digits. */
    const unsigned char *key; /**< 16 bytes that name the collector and the study. */
    const ldp_question *questions;
    uint16_t question_count;
    uint8_t sample_one_question;     /**< Whether a report answers one question, drawn at random. */
    const ldp_public *public_fields; /**< By id; without those that a ticket carries. */
    uint16_t public_count;
    const char *head; /**< The report's text before its id. */
    const char *tail; /**< Its text after payloads and public fields. */
    uint32_t report_size;    /**< The bytes of every report, with the spaces behind it. */
    uint32_t permanent_size; /**< The bytes of the permanent answers, each behind one byte. */
    uint32_t work_words;     /**< The words that ldp_draw_report needs. */
    uint32_t record_size;    /**< The bytes of a record that ldp_answer needs. */
} ldp_study;

/**
 * Draws the report of one person's answers. Use ldp_answer unless the app has its own ledger.
 *
 * @param study     the study.
 * @param values    the values of all questions, one question's fields after the other's.
 * @param chosen    the index of each public field's value; may be null without public fields.
 * @param random    a started source.
 * @param work      `work_words` words, wiped afterwards.
 * @param permanent `permanent_size` bytes: for each memoized question 1 and its permanent answer, or 0, and then this
 *                  function draws it. Store them durably before the report leaves. May be null without such questions.
 * @param secret    receives the right to delete the report. It must not leave the device.
 * @param report    receives `report_size` bytes of JSON, without a zero at the end.
 * @return as ldp_draw.
 */
ldp_result ldp_draw_report(const ldp_study *study, const ldp_value *values, const uint32_t *chosen, ldp_random *random,
                           uint64_t *work, unsigned char *permanent, unsigned char secret[LDP_SECRET_BYTES],
                           char *report);

/* ---- The ledger: a device's memory, in an append-only journal ------------------------------------------------- */

/**
 * The app's storage: a file, or a region of flash. It holds one journal, which only grows.
 *
 * One process uses a journal at a time: the app holds a lock. The journal has secrets: keep it private, out of backups,
 * and through updates. A deleted journal has forgotten its answers.
 */
typedef struct ldp_journal {
    void *context; /**< Passed to the callbacks; may be null. */
    /** Reads up to `size` bytes from `offset`. Returns how many; fewer only at the end; -1 for an error. */
    int32_t (*read)(void *context, uint32_t offset, unsigned char *out, uint32_t size);
    /** Appends bytes. Returns 0, or another number for an error; a part may then be written. */
    int32_t (*append)(void *context, const unsigned char *bytes, uint32_t size);
    /** Makes all that was appended durable: it survives a loss of power. Returns 0, or another number for an error,
        after which `read` must not return bytes that may be lost. */
    int32_t (*sync)(void *context);
} ldp_journal;

/** An open ledger. Its members are private, except the sums. */
typedef struct ldp_ledger {
    const ldp_journal *journal;
    uint64_t epsilon, delta;           /**< What all answers of this device's life cost so far. */
    uint64_t most_epsilon, most_delta; /**< The lifetime budget. */
    uint32_t end, first;
    uint8_t is_open;
} ldp_ledger;

/** What to send next: see ldp_next. */
typedef struct ldp_parcel {
    char id[LDP_ID_CHARACTERS];                /**< The report's id. */
    uint8_t withdrawn;                         /**< 0: PUT the report. 1: DELETE it, with the secret. */
    unsigned char secret[LDP_SECRET_BYTES];    /**< For LDPKit-Withdrawal, in hexadecimal digits. */
    unsigned char study[16];                   /**< The study's key. */
    uint32_t size;                             /**< The bytes of the report. */
    uint32_t offset, next;                     /* private */
} ldp_parcel;

/**
 * Opens a ledger: reads the journal, checks every record, and makes it durable.
 *
 * A record that was cut off by a loss of power is skipped: its report never left. The ledger keeps the smallest budget
 * that was ever stated, unless `raise` is set.
 *
 * @param ledger  the ledger to open.
 * @param journal the storage; it must outlive the ledger.
 * @param epsilon the most that all answers of the device's life may cost, in units of 2^-32 nats.
 * @param delta   the same of delta, in units of 2^-63.
 * @param raise   1 only if the device's owner asked for a larger budget.
 * @return LDP_OK, LDP_ERROR_JOURNAL or LDP_ERROR_STORAGE.
 */
ldp_result ldp_ledger_open(ldp_ledger *ledger, const ldp_journal *journal, uint64_t epsilon, uint64_t delta,
                           int raise);

/**
 * Answers a study once: draws the report, and makes spend, report and permanent answers durable together.
 *
 * Ask for consent to this version before. The report waits until ldp_next returns it. Nothing was spent after an error,
 * except perhaps after LDP_ERROR_STORAGE: open the ledger again, which tells.
 *
 * @param ledger the ledger.
 * @param study  the study.
 * @param values as in ldp_draw_report.
 * @param chosen as in ldp_draw_report.
 * @param random a started source.
 * @param work   `work_words` words, wiped afterwards.
 * @param record `record_size` bytes, wiped afterwards.
 * @return LDP_OK; LDP_ERROR_ANSWER, LDP_ERROR_ANSWERED or LDP_ERROR_BUDGET before any noise is drawn;
 *         LDP_ERROR_JOURNAL; LDP_ERROR_STORAGE; an error of the source.
 */
ldp_result ldp_answer(ldp_ledger *ledger, const ldp_study *study, const ldp_value *values, const uint32_t *chosen,
                      ldp_random *random, uint64_t *work, unsigned char *record);

/**
 * Finds the next report that must be sent or deleted. A loop over all begins with a zeroed parcel:
 * `for (ldp_parcel parcel = {.next = 0}; ldp_next(&ledger, &parcel) == LDP_OK;) …`
 *
 * @param ledger the ledger.
 * @param parcel zeroed for the oldest report, or as the last call left it; receives what to send.
 * @return LDP_OK; LDP_NOTHING if nothing waits; LDP_ERROR_STORAGE or LDP_ERROR_JOURNAL.
 */
ldp_result ldp_next(ldp_ledger *ledger, ldp_parcel *parcel);

/**
 * Reads a part of a report's bytes. They are the same at each attempt.
 *
 * @param ledger the ledger.
 * @param parcel of ldp_next.
 * @param start  the first byte.
 * @param out    receives the bytes.
 * @param size   how many; start + size is at most parcel->size.
 * @return LDP_OK or LDP_ERROR_STORAGE.
 */
ldp_result ldp_report_bytes(ldp_ledger *ledger, const ldp_parcel *parcel, uint32_t start, unsigned char *out,
                            uint32_t size);

/**
 * Notes durably that a parcel is done: the collector has stored, deleted or permanently refused the report.
 *
 * @param ledger the ledger.
 * @param parcel of ldp_next.
 * @return LDP_OK or LDP_ERROR_STORAGE.
 */
ldp_result ldp_done(ldp_ledger *ledger, const ldp_parcel *parcel);

/**
 * Withdraws all reports of a study, sent or not. The budget is not refunded, and no question is answered again.
 *
 * @param ledger the ledger.
 * @param study  the study, in any version.
 * @return LDP_OK or LDP_ERROR_STORAGE.
 */
ldp_result ldp_withdraw(ldp_ledger *ledger, const ldp_study *study);

#ifdef __cplusplus
}
#endif

#endif
