/**
 * @file ldpkit.h
 * The device core of ldpkit in C99: noisy answers, reports and their bytes, for phones and boards.
 *
 * The core never allocates memory, has no global state, and does no input or output. It gets random bytes from a
 * callback. It adds noise to answers, and writes the text of a report. A question is a table of integers.
 * `ldpkit compile study.json --to c` writes this table, so the core computes no logarithm and no privacy level.
 *
 * The same random bytes give the same payload as in Python and JavaScript. docs/payloads.md states every law.
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
    LDP_ERROR_QUESTION = -5,      /**< A table was not written by `ldpkit compile` for this version of the core. */
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

/** A question and the integers of its law. Names in brackets are those of docs/payloads.md. */
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
    const unsigned char *memory_key; /**< Of a memoized question: 32 bytes that name its words and its noise. */
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
 * @return LDP_OK; LDP_ERROR_ANSWER, before the first byte is read; LDP_ERROR_MEMORY for a memoized question; an error of
 *         the source, after which `payload` holds zeros.
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

/* ---- Reports ------------------------------------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif

#endif
