"""`python -m benchmarks.ddplr.many_holders [--holders J] [--features d] [--tiny]`: a fit of many holders.

All holders have different numbers of records (50 to 500, as far as there are so many), which is the slowest
case. Records are of the model itself, without clipping: that changes no time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.ddplr.ours import question_of
from benchmarks.running import add_sizes, headline, verdict
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.models.holder_regression import holder_regression
from inference.results.convergence import mixing
from inference.sampling import sample
from inference.sampling.nuts import KEPT, WARMUP
from ldp_client import mechanism_for
from schemas import Question

FEWEST, MOST = 50, 500
SPREAD, SLOPE, SD = 0.25, 0.3, 0.2
TARGET_S = 120


class Measured(NamedTuple):
    """Seconds on the wall and of all processors; the least bulk ESS, the largest R-hat; mean slopes (d,)."""

    wall: float
    processors: float
    ess: float
    r_hat: float
    slopes: np.ndarray


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one fit and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holders", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10)
    add_sizes(parser)
    asked = parser.parse_args(argv)
    headline(
        f"A fit of {asked.holders:,} holders, d = {asked.features}, ε = 1 for each",
        f"none; target {TARGET_S} s",
    )
    question = question_of(asked.features, intercept=True)
    lengths = asked.size.of((WARMUP, KEPT), (WARMUP, KEPT), ((100,), 100))
    found = measure(question, releases(question, asked.holders), *lengths)
    verdict(
        f"{found.wall:.1f} s on the wall, {found.processors:.0f} s of processors; "
        f"least ESS {found.ess:,.0f}, largest R-hat {found.r_hat:.3f}"
    )


def releases(question: Question, holders: int) -> HolderStatistics:
    """What so many holders release: exact sums with noise as the mechanism states it."""
    random = np.random.default_rng(1)
    d, mechanism = len(question.features), mechanism_for(question)
    tables = []
    for n in random.integers(FEWEST, MOST, holders):
        x = random.normal(0, SPREAD, (n, d))
        tables.append((x, x @ np.full(d, SLOPE) + random.normal(0, SD, n)))
    found = exact(tables, intercept=True)
    noise = np.zeros((d + 2, d + 2))
    for (i, j), scale in zip(mechanism.coordinates, mechanism.noise_scale, strict=True):
        noise[i, j] = noise[j, i] = scale
    upper = np.triu(random.normal(size=found.sums.shape) * noise)
    return replace(found, sums=found.sums + upper + np.swapaxes(np.triu(upper, 1), 1, 2), noise=noise)


def measure(question: Question, statistics: HolderStatistics, warmup: tuple[int, ...], kept: int) -> Measured:
    """One fit, compilation included."""
    wall, processors = time.perf_counter(), time.process_time()
    model = holder_regression(question, statistics)
    parameters = model.parameters(sample(model, 1, warmup, kept).sites)
    wall, processors = time.perf_counter() - wall, time.process_time() - processors
    mixed = mixing(parameters)
    slopes = np.array([parameters[f"coefficient[{one.id}]"].mean() for one in question.features])
    return Measured(wall, processors, min(mixed.ess_bulk.values()), max(mixed.r_hat.values()), slopes)


if __name__ == "__main__":
    main()
