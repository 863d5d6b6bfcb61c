/*
 * A board that measures, answers the study `sleep` once, and prints its report. It runs in QEMU:
 *
 *   ldpkit compile examples/native/study.json --to c --collector https://study.example.org --out app
 *   arm-none-eabi-gcc -std=c99 -Os -mcpu=cortex-m3 -mthumb -Ic -Iapp --specs=rdimon.specs -nostartfiles \
 *     -T examples/native/board/board.ld -o app/board.elf SOURCES
 *   qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel app/board.elf
 *
 * The programs are in Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. SOURCES are the C files of
 * c and of examples/native/board. Its files are the host's. On a board replace three functions: `fill` by the hardware
 * generator, and the journal by a region of flash.
 */
#include <stdio.h>

#include "study_sleep.h"

#define BUDGET_EPSILON ((uint64_t)4 << 32)

static FILE *generator, *journal_file;
static ldp_random random_source;
static uint64_t work[8];
static unsigned char record[1024];

static size_t fill(void *context, unsigned char *out, size_t size) {
    (void)context;
    return fread(out, 1, size, generator);
}

static int32_t read_journal(void *context, uint32_t offset, unsigned char *out, uint32_t size) {
    (void)context;
    if (fseek(journal_file, (long)offset, SEEK_SET)) return -1;
    return (int32_t)fread(out, 1, size, journal_file);
}

static int32_t append_journal(void *context, const unsigned char *bytes, uint32_t size) {
    (void)context;
    return fseek(journal_file, 0, SEEK_END) || fwrite(bytes, 1, size, journal_file) != size;
}

/* In flash a write is durable when the controller says so. */
static int32_t sync_journal(void *context) {
    (void)context;
    return fflush(journal_file);
}

int main(void) {
    static const ldp_journal journal = {NULL, read_journal, append_journal, sync_journal};
    ldp_ledger ledger;
    ldp_parcel parcel = {.next = 0};
    ldp_value values[2] = {{.kind = LDP_NUMBER, .number = 7.5}, {.kind = LDP_CHOICE, .choice = 1}};
    generator = fopen("/dev/urandom", "rb");
    journal_file = fopen("journal", "r+b");
    if (!journal_file) journal_file = fopen("journal", "w+b");
    if (!generator || !journal_file) return 2;
    if (study_sleep.work_words > 8 || study_sleep.record_size > sizeof record) return 3;
    if (ldp_ledger_open(&ledger, &journal, BUDGET_EPSILON, 0, 0)) return 4;
    if (ldp_random_begin(&random_source, fill, NULL)) return 5;
    ldp_result result = ldp_answer(&ledger, &study_sleep, values, NULL, &random_source, work, record);
    ldp_random_end(&random_source);
    if (result && result != LDP_ERROR_ANSWERED) return 6;
    if (ldp_next(&ledger, &parcel)) return 1;
    printf("PUT %s\n", parcel.id);
    for (uint32_t at = 0; at < parcel.size; at++) {
        unsigned char byte;
        if (ldp_report_bytes(&ledger, &parcel, at, &byte, 1)) return 7;
        putchar(byte);
    }
    putchar('\n');
    return 0;
}
