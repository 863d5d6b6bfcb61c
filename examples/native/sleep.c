/*
 * A device for Linux and macOS: it answers the study `sleep` once, and prints what must be sent.
 *
 *   sleep JOURNAL answer HOURS yes|no   draws the report and stores it durably
 *   sleep JOURNAL next                  prints "PUT id" or "DELETE id secret", then the report; exits with 1 if nothing waits
 *   sleep JOURNAL done                  notes that the collector has confirmed it
 *   sleep JOURNAL withdraw              withdraws the report
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ldpkit_device.h"
#include "study_sleep.h"

/* The most that all answers of this device's life may cost. */
#define BUDGET_EPSILON ((uint64_t)4 << 32)
#define BUDGET_DELTA 0
#define USAGE "usage: sleep JOURNAL answer HOURS yes|no | next | done | withdraw\n"
#define STOP(...) (fprintf(stderr, __VA_ARGS__), exit(2))

static void answer(ldp_device *device, const char *hours, const char *pills) {
    char *end;
    ldp_value values[2] = {{.kind = LDP_NUMBER, .number = strtod(hours, &end)},
                           {.kind = LDP_CHOICE, .choice = strcmp(pills, "yes") == 0}};
    if (end == hours || *end || (strcmp(pills, "yes") && strcmp(pills, "no"))) STOP(USAGE);
    ldp_result result = ldp_device_answer(device, &study_sleep, values, 2, NULL, 0);
    ldp_wipe(values, sizeof values);
    if (result == LDP_ERROR_ANSWERED) STOP("not answered: this journal has an answer already\n");
    if (result) STOP("not answered: error %d of ldpkit.h\n", (int)result);
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
    if (count < 3) STOP(USAGE);
    ldp_device *device;
    ldp_parcel parcel = {.next = 0};
    ldp_result opened = ldp_device_open(&device, words[1], BUDGET_EPSILON, BUDGET_DELTA, 0);
    if (opened) STOP("cannot use the journal: error %d of ldpkit.h\n", (int)opened);
    ldp_ledger *ledger = &device->ledger;
    int status = 0;
    if (!strcmp(words[2], "answer") && count == 5) answer(device, words[3], words[4]);
    else if (!strcmp(words[2], "next")) status = print_next(ledger, &parcel);
    else if (!strcmp(words[2], "done")) status = ldp_next(ledger, &parcel) || ldp_done(ledger, &parcel);
    else if (!strcmp(words[2], "withdraw")) status = ldp_withdraw(ledger, &study_sleep) != LDP_OK;
    else STOP(USAGE);
    ldp_device_close(device);
    return status;
}
