"""Keeps freed memory in a worker while it reads: it needs the memory again at once.

glibc returns freed memory to the system, in pieces as small as 128 KiB if MALLOC_TRIM_THRESHOLD_ is set, as
Dask sets it for its workers. Each batch of reports then requests the same pages again, and the system fills
them with zeros: a third of all the CPU that a report costs. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# From malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The most freed memory that is kept, and the largest allocation without its own mmap (glibc's maximum).
KEPT = 1 << 26
LARGEST = 1 << 25


@cache
def keep_memory() -> bool:
    """Have this process keep up to 64 MiB that it freed.

    Returns:
        Whether the C library does so.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(
        mallopt(which, size) == 1 for which, size in ((M_TRIM_THRESHOLD, KEPT), (M_MMAP_THRESHOLD, LARGEST))
    )
