/* A ledger in a file, with the system's random bytes. */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "ldpkit_device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MOST_RANDOM_BYTES 256 /* of one getentropy */

static int32_t read_file(void *context, uint32_t offset, unsigned char *out, uint32_t size) {
    return (int32_t)pread(((ldp_device *)context)->file, out, size, (off_t)offset);
}

static int32_t append_file(void *context, const unsigned char *bytes, uint32_t size) {
    while (size) {
        ssize_t count = write(((ldp_device *)context)->file, bytes, size);
        if (count <= 0) return 1;
        bytes += count;
        size -= (uint32_t)count;
    }
    return 0;
}

static int32_t sync_file(void *context) {
    const ldp_device *device = context;
#ifdef F_FULLFSYNC /* fsync of Apple's systems does not reach the disk */
    int32_t failed = fcntl(device->file, F_FULLFSYNC);
#else
    int32_t failed = fsync(device->file);
#endif
    /* The system may keep bytes in its cache that the disk refused, and the next sync succeed without them. */
    int is_known = device->ledger.end != UINT32_MAX; /* what was durable before */
    if (failed && is_known) failed |= ftruncate(device->file, (off_t)device->ledger.end);
    return failed;
}

static size_t fill(void *context, unsigned char *out, size_t size) {
    size_t done = 0;
    (void)context;
#if defined __APPLE__ || defined __ANDROID__
    arc4random_buf(out, size); /* apps have no getentropy on iOS, nor on Android before 9 */
    done = size;
#else
    while (done < size) {
        size_t part = size - done < MOST_RANDOM_BYTES ? size - done : MOST_RANDOM_BYTES;
        if (getentropy(out + done, part)) break;
        done += part;
    }
#endif
    return done;
}

/* Makes the name of a new file durable. Returns 0, or another number for an error. */
static int sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) + 1 : 1;
    char *name = calloc(size + 1, 1);
    if (!name) return 1;
    memcpy(name, slash ? path : ".", size);
    int folder = open(name, O_RDONLY | O_CLOEXEC);
    free(name);
    if (folder < 0) return 1;
    int result = fsync(folder);
    close(folder);
    return result;
}

ldp_result ldp_device_open(ldp_device **device, const char *path, uint64_t epsilon, uint64_t delta, int raise) {
    ldp_result result = LDP_ERROR_STORAGE;
    ldp_device *opened = calloc(1, sizeof *opened);
    *device = NULL;
    if (!opened) return result;
    opened->journal = (ldp_journal){opened, read_file, append_file, sync_file};
    opened->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (opened->file >= 0 && !flock(opened->file, LOCK_EX | LOCK_NB) && !sync_folder(path))
        result = ldp_ledger_open(&opened->ledger, &opened->journal, epsilon, delta, raise);
    if (result) ldp_device_close(opened);
    else *device = opened;
    return result;
}

void ldp_device_close(ldp_device *device) {
    if (device && device->file >= 0) close(device->file);
    free(device);
}

ldp_result ldp_device_answer(ldp_device *device, const ldp_study *study, const ldp_value *values, size_t value_count,
                             const uint32_t *chosen, size_t chosen_count) {
    size_t fields = 0;
    for (unsigned i = 0; i < study->question_count; i++) fields += study->questions[i].field_count;
    if (value_count != fields || chosen_count != study->public_count) return LDP_ERROR_ANSWER;
    ldp_random random;
    ldp_result result = ldp_random_begin(&random, fill, NULL);
    uint64_t *work = calloc(study->work_words + 1u, sizeof *work);
    unsigned char *record = malloc(study->record_size);
    if (!work || !record) result = LDP_ERROR_STORAGE;
    if (!result) result = ldp_answer(&device->ledger, study, values, chosen, &random, work, record);
    ldp_random_end(&random);
    free(work);
    free(record);
    return result;
}
