/**
 * @file ldpkit_device.h
 * A ledger in a file, with the system's random bytes, for Linux, Android, macOS and iOS. Other systems use ldpkit.h.
 *
 * One thread uses a device at a time.
 */
#ifndef LDPKIT_DEVICE_H
#define LDPKIT_DEVICE_H

#include "ldpkit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An open ledger, and its journal in a file. Pass `&device->ledger` to ldp_next, ldp_done and ldp_withdraw. */
typedef struct ldp_device {
    int file;
    ldp_journal journal;
    ldp_ledger ledger;
} ldp_device;

/**
 * Opens the ledger in a file, which is made if it is new. The file is locked: another process cannot open it.
 *
 * @param device  receives the ledger in allocated memory, which ldp_device_close frees; null after an error.
 * @param path    the file's path. Keep it in private storage, out of backups, and through updates of the app.
 * @param epsilon as in ldp_ledger_open.
 * @param delta   as in ldp_ledger_open.
 * @param raise   as in ldp_ledger_open.
 * @return as ldp_ledger_open; LDP_ERROR_STORAGE also if the file is open already, or there is no memory.
 */
ldp_result ldp_device_open(ldp_device **device, const char *path, uint64_t epsilon, uint64_t delta, int raise);

/**
 * Closes the file, and frees the memory.
 *
 * @param device the device; may be null.
 */
void ldp_device_close(ldp_device *device);

/**
 * Answers a study once, as ldp_answer does, with the system's random bytes and with memory of its own.
 *
 * @param device       the device.
 * @param study        the study.
 * @param values       as in ldp_answer.
 * @param value_count  how many values there are: a wrong number is LDP_ERROR_ANSWER.
 * @param chosen       as in ldp_answer.
 * @param chosen_count how many public fields are given: a wrong number is LDP_ERROR_ANSWER.
 * @return as ldp_answer; LDP_ERROR_STORAGE also if there is no memory.
 */
ldp_result ldp_device_answer(ldp_device *device, const ldp_study *study, const ldp_value *values, size_t value_count,
                             const uint32_t *chosen, size_t chosen_count);

#ifdef __cplusplus
}
#endif

#endif
