/* A disk that can fail, preloaded into a server: for files under FAILING_DISK_ROOT, keeps in
   FAILING_DISK_DURABLE what a loss of power would leave, which is what was written before the last flush, and
   files that were removed since a folder was last flushed; and ends the process just before its
   FAILING_DISK_DIES_AT-th write, flush, removal or renaming. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct range {
    struct range *next;
    off_t start;
    size_t length;
    char name[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *unflushed;

struct removal {
    struct removal *next;
    char copy[PATH_MAX];
};

static struct removal *unkept;

/* The file's name under the root, or NULL for a file that is elsewhere. */
static const char *name_of(int fd, char *path)
{
    char link[64];
    const char *root = getenv("FAILING_DISK_ROOT");
    if (root == NULL)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    path[length] = 0;
    size_t skipped = strlen(root);
    if (strncmp(path, root, skipped) != 0 || path[skipped] != '/')
        return NULL;
    return path + skipped + 1;
}

static void count_down(void)
{
    static long done;
    const char *last = getenv("FAILING_DISK_DIES_AT");
    if (last != NULL && ++done == atol(last))
        _exit(9);
}

static void remember(const char *name, off_t start, size_t length)
{
    struct range *range = malloc(sizeof *range);
    range->start = start;
    range->length = length;
    snprintf(range->name, sizeof range->name, "%s", name);
    pthread_mutex_lock(&lock);
    range->next = unflushed;
    unflushed = range;
    pthread_mutex_unlock(&lock);
}

static ssize_t write_at(const char *symbol, int fd, const void *data, size_t length, off_t start)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, symbol);
    char path[PATH_MAX];
    const char *name = name_of(fd, path);
    if (name != NULL)
        count_down();
    ssize_t written = real(fd, data, length, start);
    if (name != NULL && written > 0)
        remember(name, start, written);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t start)
{
    return write_at("pwrite", fd, data, length, start);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t start)
{
    return write_at("pwrite64", fd, data, length, start);
}

static void copy_range(int from, int to, off_t start, size_t length)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    char *buffer = malloc(length);
    ssize_t got = pread(from, buffer, length, start);
    if (got > 0 && real(to, buffer, got, start) != got)
        abort();
    free(buffer);
}

static int remove_copy(const char *copy)
{
    int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
    return real(copy);
}

static void remember_removal(const char *copy)
{
    struct removal *removal = malloc(sizeof *removal);
    snprintf(removal->copy, sizeof removal->copy, "%s", copy);
    pthread_mutex_lock(&lock);
    removal->next = unkept;
    unkept = removal;
    pthread_mutex_unlock(&lock);
}

/* Removals become durable: that of one copy, whose name another file has now, or with NULL all. */
static void keep_removals(const char *copy)
{
    pthread_mutex_lock(&lock);
    for (struct removal **place = &unkept; *place != NULL;) {
        struct removal *removal = *place;
        if (copy != NULL && strcmp(removal->copy, copy) != 0) {
            place = &removal->next;
            continue;
        }
        remove_copy(removal->copy);
        *place = removal->next;
        free(removal);
    }
    pthread_mutex_unlock(&lock);
}

static void make_durable(int fd, const char *name)
{
    char path[PATH_MAX];
    struct stat now;
    snprintf(path, sizeof path, "%s/%s", getenv("FAILING_DISK_DURABLE"), name);
    keep_removals(path);
    int copy = open(path, O_RDWR | O_CREAT, 0600);
    if (copy < 0 || fstat(fd, &now) != 0)
        abort();
    pthread_mutex_lock(&lock);
    for (struct range **place = &unflushed; *place != NULL;) {
        struct range *range = *place;
        if (strcmp(range->name, name) != 0) {
            place = &range->next;
            continue;
        }
        copy_range(fd, copy, range->start, range->length);
        *place = range->next;
        free(range);
    }
    pthread_mutex_unlock(&lock);
    if (ftruncate(copy, now.st_size) != 0)
        abort();
    close(copy);
}

static int flush(const char *symbol, int fd)
{
    int (*real)(int) = dlsym(RTLD_NEXT, symbol);
    char path[PATH_MAX];
    const char *name = name_of(fd, path);
    if (name != NULL)
        count_down();
    struct stat now;
    int is_folder = fstat(fd, &now) == 0 && S_ISDIR(now.st_mode);
    if (is_folder)
        keep_removals(NULL);
    if (name != NULL && !is_folder && getenv("FAILING_DISK_DURABLE") != NULL) {
        make_durable(fd, name);
        return 0;
    }
    return real(fd);
}

int fsync(int fd)
{
    return flush("fsync", fd);
}

int fdatasync(int fd)
{
    return flush("fdatasync", fd);
}

/* Where what is durable of a file under the root is kept, or NULL for another file. */
static const char *durable_of(const char *path, char *copy)
{
    const char *root = getenv("FAILING_DISK_ROOT"), *durable = getenv("FAILING_DISK_DURABLE");
    if (root == NULL || strncmp(path, root, strlen(root)) != 0)
        return NULL;
    count_down();
    if (durable == NULL)
        return NULL;
    snprintf(copy, PATH_MAX, "%s%s", durable, path + strlen(root));
    return copy;
}

int unlink(const char *path)
{
    char copy[PATH_MAX];
    if (durable_of(path, copy) != NULL)
        remember_removal(copy);
    return remove_copy(path);
}

/* The file system keeps its own directory in order: a file that is renamed stays so. */
int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    char old[PATH_MAX], new[PATH_MAX];
    if (durable_of(from, old) != NULL && snprintf(new, PATH_MAX, "%s%s", getenv("FAILING_DISK_DURABLE"),
                                                  to + strlen(getenv("FAILING_DISK_ROOT"))) > 0)
        real(old, new);
    return real(from, to);
}
