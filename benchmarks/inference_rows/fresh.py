"""`ldpkit fit` in a process of its own: imports, compilation, draws, pictures and report page."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.random import Generator

from benchmarks.inference_rows.cases import PEOPLE, Case, cases_of
from benchmarks.ldpbi.surveys import signs_study, signs_summary, summary_of
from benchmarks.running import Row, Size
from ldp_client.documents.errors import EXIT_NOT_TRUSTED
from schemas import Question
from summaries import QuestionSummary

# Each with its target in seconds; then those of signs.
TURNS = (("fresh process, empty cache", 15), ("second process", 8))
TURNS_OF_SIGNS = ((TURNS[0][0], 12), (TURNS[1][0], 5))
COMMAND = [sys.executable, "-m", "ldpkit", "fit"]


def fresh_processes(size: Size) -> Iterator[Row]:
    """Each built-in model twice, the second time with the programs that the first left in the cache."""
    for name, case in cases_of(size):
        yield from _twice(name, case, size, TURNS)


def signs(size: Size) -> Iterator[Row]:
    """The same of a linear regression on signs of sampled products."""
    d = size.of(10, 10, 1)
    case = Case(signs_study(np.ones(d), 1.0, "linear_regression"), _signs)
    yield from _twice(f"signs, linear d = {d}", case, size, TURNS_OF_SIGNS)


def _signs(question: Question, n: int, random: Generator) -> QuestionSummary:
    """Reports of people whose features resemble one another."""
    d = len(question.features)
    x = np.clip(0.25 * (random.normal(size=(n, d)) + 0.5 * random.normal(size=(n, 1))), -1, 1)
    slopes = np.linspace(0.4, -0.3, d) / np.sqrt(d)
    return signs_summary(question, x, 0.1 + x @ slopes + random.normal(0, 0.2, n), random)


def _twice(name: str, case: Case, size: Size, turns: tuple[tuple[str, int], ...]) -> Iterator[Row]:
    with TemporaryDirectory(prefix="ldpkit-") as folder:
        place = Path(folder)
        summary = summary_of(case.study, case.summary(size.of(PEOPLE, PEOPLE, 500)))
        (place / "study.json").write_text(case.study.to_json(), encoding="utf-8")
        (place / "summary.json").write_text(summary.to_json(), encoding="utf-8")
        for what, target in size.of(turns, turns, turns[:1]):
            taken = seconds_of(place, f"out-{what.split()[0]}")
            yield Row(f"{what}: {name}", f"{taken:.1f} s", f"≤ {target} s", taken <= target)


def seconds_of(place: Path, out: str) -> float:
    """Seconds on the wall of a fit of the study and summary in a folder, whose cache the next one finds."""
    # A cache folder that JAX already has would keep the first process from being fresh.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    start = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "study.json", "summary.json", "--out", out],
        cwd=place,
        env={**environment, "LDPKIT_CACHE": str(place / "cache"), "PYTHONPATH": os.getcwd()},
        check=False,
        capture_output=True,
    )
    # A result that is not to be trusted yet took as long.
    if done.returncode not in (0, EXIT_NOT_TRUSTED):
        raise RuntimeError(done.stderr.decode())
    return time.perf_counter() - start
