/*
 * A device for Linux and macOS: it answers the study `sleep` once, and prints what must be sent.
 *
 *   sleep JOURNAL answer HOURS yes|no   draws the report and stores it durably
 *   sleep JOURNAL next                  prints "PUT id" or "DELETE id secret", then the report; exits with 1 if nothing waits
 *   sleep JOURNAL done                  notes that the collector has confirmed it
 *   sleep JOURNAL withdraw              withdraws the report
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "study_sleep.h"

/* The most that all answers of this device's life may cost. */
#define BUDGET_EPSILON ((uint64_t)4 << 32)
#define BUDGET_DELTA 0
#define STOP(...) (fprintf(stderr, __VA_ARGS__), exit(2))

static size_t fill(void *context, unsigned char *out, size_t size) {
    size_t done = 0;
    (void)context;
    while (done < size) {
        size_t part = size - done < 256 ? size - done : 256;
        if (getentropy(out + done, part)) break;
        done += part;
    }
    return done;
}

static int32_t read_journal(void *file, uint32_t offset, unsigned char *out, uint32_t size) {
    return (int32_t)pread(*(int *)file, out, size, offset);
}

static int32_t append_journal(void *file, const unsigned char *bytes, uint32_t size) {
    while (size) {
        ssize_t count = write(*(int *)file, bytes, size);
        if (count <= 0) return 1;
        bytes += count;
        size -= (uint32_t)count;
    }
    return 0;
}

/* On macOS fsync does not reach the disk: use fcntl(file, F_FULLFSYNC) there. */
static int32_t sync_journal(void *file) { return fsync(*(int *)file); }

/* Opens the journal for this process alone, and makes a new file's name durable. */
static int open_journal(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_APPEND, 0600), folder = open(".", O_RDONLY);
    if (file < 0 || flock(file, LOCK_EX) || folder < 0 || fsync(folder)) STOP("cannot open %s\n", path);
    close(folder);
    return file;
}

static void answer(ldp_ledger *ledger, const char *hours, const char *pills) {
    static ldp_random random;
    uint64_t work[8];
    unsigned char record[1024];
    ldp_value values[2] = {{.kind = LDP_NUMBER, .number = atof(hours)},
                           {.kind = LDP_CHOICE, .choice = strcmp(pills, "yes") == 0}};
    if (study_sleep.work_words > 8 || study_sleep.record_size > sizeof record) STOP("the buffers are too small\n");
    if (ldp_random_begin(&random, fill, NULL)) STOP("the system's random bytes are broken\n");
    ldp_result result = ldp_answer(ledger, &study_sleep, values, NULL, &random, work, record);
    ldp_random_end(&random);
    ldp_wipe(values, sizeof values);
    if (result) STOP("not answered: error %d\n", (int)result);
}

static int print_next(ldp_ledger *ledger, ldp_parcel *parcel) {
    if (ldp_next(ledger, parcel)) return 1;
    printf("%s %s", parcel->withdrawn ? "DELETE" : "PUT", parcel->id);
    if (parcel->withdrawn) putchar(' ');
    for (unsigned i = 0; parcel->withdrawn && i < LDP_SECRET_BYTES; i++) printf("%02x", parcel->secret[i]);
    putchar('\n');
    for (uint32_t at = 0; at < parcel->size; at++) {
        unsigned char byte;
        if (ldp_report_bytes(ledger, parcel, at, &byte, 1)) STOP("cannot read the report\n");
        putchar(byte);
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) STOP("usage: sleep JOURNAL answer HOURS yes|no | next | done | withdraw\n");
    int file = open_journal(words[1]);
    ldp_journal journal = {&file, read_journal, append_journal, sync_journal};
    ldp_ledger ledger;
    ldp_parcel parcel = {.next = 0};
    ldp_result opened = ldp_ledger_open(&ledger, &journal, BUDGET_EPSILON, BUDGET_DELTA, 0);
    if (opened) STOP("cannot use the journal: error %d\n", (int)opened);
    if (!strcmp(words[2], "answer") && count == 5) answer(&ledger, words[3], words[4]);
    else if (!strcmp(words[2], "next")) return print_next(&ledger, &parcel);
    else if (!strcmp(words[2], "done")) return ldp_next(&ledger, &parcel) || ldp_done(&ledger, &parcel);
    else if (!strcmp(words[2], "withdraw")) return ldp_withdraw(&ledger, &study_sleep) != LDP_OK;
    return 0;
}
