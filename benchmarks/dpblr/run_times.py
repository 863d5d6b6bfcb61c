"""Figures 11 and 13: what a posterior costs, by method and number of records."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpyro.diagnostics import effective_sample_size

from benchmarks.dpblr.calibration import worlds_and_releases
from benchmarks.dpblr.posteriors import Lengths, draws_of, methods_for
from benchmarks.dpblr.worlds import Noise
from benchmarks.running import show_table, verdict

TABLES = 10


def run(sizes: Sequence[int], epsilon: float, noise: Noise, lengths: Lengths, methods: Sequence[str]) -> None:
    """Print milliseconds a posterior and effective draws of the slope a second, programs compiled before."""
    rows: list[list[object]] = []
    for method in methods_for(noise):
        if method in methods:
            timed = [_timed(method, records, epsilon, noise, lengths) for records in sizes]
            rows.append([method, *(value for pair in timed for value in pair)])
    show_table(["method", *(f"{text}, n = {n}" for n in sizes for text in ("ms", "ESS/s"))], rows)
    verdict("processor time; Gibbs-SS and marginal do not grow with n, MCMC-Ind in proportion to it")


def _timed(method: str, records: int, epsilon: float, noise: Noise, lengths: Lengths) -> tuple[float, float]:
    _, releases = worlds_and_releases(records, epsilon, noise, min(lengths.tables, TABLES))
    draws_of(method, releases, lengths)
    start = time.process_time()
    drawn = draws_of(method, releases, lengths)
    spent = (time.process_time() - start) / len(releases)
    effective = np.mean([float(effective_sample_size(draws[None])) for draws in drawn.theta[..., 1]])
    return 1000 * spent, float(effective / spent)
