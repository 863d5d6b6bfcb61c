/* SHA-256 (FIPS 180-4), base64, a report's id, and integers in bytes. */
#include <string.h>

#include "internal.h"

uint64_t ldp_from_little(const unsigned char *bytes, unsigned size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | bytes[size];
    return value;
}

uint64_t ldp_from_big(const unsigned char *bytes, unsigned size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | *bytes++;
    return value;
}

void ldp_to_big(uint64_t value, unsigned char *bytes, unsigned size) {
    while (size--) {
        bytes[size] = (unsigned char)(value & 0xff);
        value >>= 8;
    }
}

static const uint32_t ROUND_CONSTANTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t word, unsigned bits) { return word >> bits | word << (32 - bits); }

static void compress(uint32_t state[8], const unsigned char *block) {
    uint32_t schedule[64], v[8];
    for (unsigned i = 0; i < 16; i++) schedule[i] = (uint32_t)ldp_from_big(block + 4 * i, 4);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t old = schedule[i - 15], recent = schedule[i - 2];
        schedule[i] = schedule[i - 16] + (rotated(old, 7) ^ rotated(old, 18) ^ old >> 3) + schedule[i - 7] +
                      (rotated(recent, 17) ^ rotated(recent, 19) ^ recent >> 10);
    }
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t sum = v[7] + (rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25)) +
                       ((v[4] & v[5]) ^ (~v[4] & v[6])) + ROUND_CONSTANTS[i] + schedule[i];
        uint32_t mixed = (rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22)) +
                         ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += sum;
        v[0] = sum + mixed;
    }
    for (unsigned i = 0; i < 8; i++) state[i] += v[i];
}

void ldp_sha256(const void *data, size_t size, unsigned char digest[32]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *bytes = data;
    unsigned char last[128] = {0};
    size_t left = size;
    for (; left >= 64; left -= 64, bytes += 64) compress(state, bytes);
    if (left) memcpy(last, bytes, left);
    last[left] = 0x80;
    size_t padded = left < 56 ? 64 : 128;
    ldp_to_big((uint64_t)size << 3, last + padded - 8, 8);
    for (size_t i = 0; i < padded; i += 64) compress(state, last + i);
    for (unsigned i = 0; i < 8; i++) ldp_to_big(state[i], digest + 4 * i, 4);
}

size_t ldp_base64_size(size_t size) { return (size + 2) / 3 * 4; }

void ldp_base64(const unsigned char *data, size_t size, char *text) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t three = (uint32_t)data[i] << 16;
        if (left > 1) three |= (uint32_t)data[i + 1] << 8;
        if (left > 2) three |= data[i + 2];
        *text++ = LETTERS[three >> 18];
        *text++ = LETTERS[three >> 12 & 63];
        *text++ = left > 1 ? LETTERS[three >> 6 & 63] : '=';
        *text++ = left > 2 ? LETTERS[three & 63] : '=';
    }
}

void ldp_report_id(const unsigned char secret[LDP_SECRET_BYTES], char id[LDP_ID_CHARACTERS]) {
    static const char PREFIX[] = "ldpkit.report-id/1"; /* hashed with the zero at its end */
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char bytes[sizeof PREFIX + LDP_SECRET_BYTES], digest[32];
    memcpy(bytes, PREFIX, sizeof PREFIX);
    memcpy(bytes + sizeof PREFIX, secret, LDP_SECRET_BYTES);
    ldp_sha256(bytes, sizeof bytes, digest);
    for (unsigned i = 0; i < 16; i++) {
        *id++ = DIGITS[digest[i] >> 4];
        *id++ = DIGITS[digest[i] & 15];
    }
    *id = 0;
    ldp_wipe(bytes, sizeof bytes);
}
