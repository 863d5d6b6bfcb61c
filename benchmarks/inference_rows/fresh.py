"""`ldpkit fit` in a process of its own: imports, compilation, draws, pictures and report page."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.inference_rows.cases import cases_of
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import summary_of
from benchmarks.sizes import Size
from ldp_client.documents.errors import EXIT_NOT_TRUSTED

PEOPLE = 100_000
# Each with its target in seconds.
TURNS = (("fresh process, empty cache", 15), ("second process", 8))
COMMAND = [sys.executable, "-c", "from ldpkit.cli import main; main()", "fit"]


def fresh_processes(size: Size) -> Iterator[Row]:
    """Each built-in model twice, the second time with the programs that the first left in the cache."""
    for name, case in cases_of(size):
        with TemporaryDirectory(prefix="ldpkit-") as folder:
            place = Path(folder)
            summary = summary_of(case.study, case.summary(size.of(PEOPLE, PEOPLE, 500)))
            (place / "study.json").write_text(case.study.to_json(), encoding="utf-8")
            (place / "summary.json").write_text(summary.to_json(), encoding="utf-8")
            for what, target in size.of(TURNS, TURNS, TURNS[:1]):
                taken = seconds_of(place, f"out-{what.split()[0]}")
                yield Row(f"{what}: {name}", f"{taken:.1f} s", f"≤ {target} s", taken <= target)


def seconds_of(place: Path, out: str) -> float:
    """Seconds on the wall of a fit of the study and summary in a folder, whose cache the next one finds."""
    start = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "study.json", "summary.json", "--out", out],
        cwd=place,
        env={**os.environ, "LDPKIT_CACHE": str(place / "cache"), "PYTHONPATH": os.getcwd()},
        check=False,
        capture_output=True,
    )
    # A result that is not to be trusted yet took as long.
    if done.returncode not in (0, EXIT_NOT_TRUSTED):
        raise RuntimeError(done.stderr.decode())
    return time.perf_counter() - start
