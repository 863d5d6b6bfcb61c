"""`ldpkit fit` in a process of its own: imports, compilation, draws, pictures and report page."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.inference_rows.cases import CASES
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import summary_of
from ldp_client.documents.errors import EXIT_NOT_TRUSTED

PEOPLE = 100_000
COMMAND = [sys.executable, "-c", "from ldp_client.cli import main; main()", "fit"]


def fresh_processes() -> Iterator[Row]:
    """Each built-in model twice, the second time with the programs that the first left in the cache."""
    for name, case in CASES.items():
        with TemporaryDirectory(prefix="ldpkit-") as folder:
            place = Path(folder)
            summary = summary_of(case.study, case.summary(PEOPLE))
            (place / "study.json").write_text(case.study.to_json(), encoding="utf-8")
            (place / "summary.json").write_text(summary.to_json(), encoding="utf-8")
            first, second = (seconds_of(place, f"out{turn}") for turn in range(2))
        yield Row(f"fresh process, empty cache: {name}", f"{first:.1f} s", "≤ 15 s", first <= 15)
        yield Row(f"second process: {name}", f"{second:.1f} s", "≤ 8 s", second <= 8)


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
