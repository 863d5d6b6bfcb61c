/* What Android's C library has and musl, whose headers zig brings, has not. */
#include <stddef.h>

void arc4random_buf(void *out, size_t size);
