"""Workers keep memory that they freed, also where Dask's settings would give it back at once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

from summaries.engines.work import keep_memory

# Fifty times a mebibyte, 256 pages.
PROGRAM = """
import resource
import sys
import numpy as np
from summaries.engines.work import keep_memory
if sys.argv[1] == "keep":
    keep_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(1 << 20, np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# As Dask starts its workers.
ENVIRONMENT = {"MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": os.pathsep.join(sys.path)}


def new_pages(what: str) -> int:
    """How many pages a process asks of the system."""
    command = [sys.executable, "-c", PROGRAM, what]
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_freed_memory_is_used_again() -> None:
    if platform.libc_ver()[0] != "glibc":
        assert not keep_memory()
        return
    assert new_pages("as it is") > 50 * 200
    assert new_pages("keep") < 5 * 256
