"""Figure 10: when does the noise-naive posterior become the non-private one?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.dpblr.worlds import PRIOR, Matrix, Noise, draw_world, release
from benchmarks.running import show_table, verdict
from inference.likelihoods.holders.statistics import HolderStatistics

TABLES = 20


def run(sizes: Sequence[int], epsilons: tuple[float, ...], noise: Noise) -> None:
    """Print the median distance of posterior means of θ, as it is and in non-private posterior sds."""
    rows: list[list[object]] = []
    for records in sizes:
        rows.append(
            [records, *(value for epsilon in epsilons for value in _distance(records, epsilon, noise))]
        )
    show_table(
        ["records", *(f"{text}ε = {epsilon:g}" for epsilon in epsilons for text in ("", "in sds, "))], rows
    )
    reached = []
    for i, epsilon in enumerate(epsilons):
        near = [str(row[0]) for row in rows if float(str(row[2 * i + 2])) < 1]
        reached.append(f"ε = {epsilon:g}: {near[0] if near else 'none of these'}")
    verdict(f"within one posterior sd from how many records on: {'; '.join(reached)}")


def _distance(records: int, epsilon: float, noise: Noise) -> tuple[float, float]:
    found = []
    for random in np.random.default_rng([10, records]).spawn(TABLES):
        released = release(draw_world(records, random), epsilon, noise, random)
        exact, sd = _mean_and_sd(released.exact)
        naive, _ = _mean_and_sd(released.noisy)
        apart = np.abs(naive - exact)
        found.append((apart.max(), (apart / sd).max()))
    plain, in_sds = np.median(found, axis=0)
    return float(plain), float(in_sds)


def _mean_and_sd(statistics: HolderStatistics) -> tuple[Matrix, Matrix]:
    """θ's posterior mean and sds from statistics taken for exact."""
    values, vectors = np.linalg.eigh(statistics.sums[0])
    sums = (vectors * np.maximum(values, 0)) @ vectors.T
    precision = sums[:2, :2] + np.linalg.inv(PRIOR.theta_covariance)
    mean = np.linalg.solve(precision, sums[:2, 2])
    rate = PRIOR.rate + (sums[2, 2] - mean @ precision @ mean) / 2
    shape = PRIOR.shape + statistics.counts[0] / 2
    return mean, np.sqrt(np.diag(np.linalg.inv(precision)) * rate / (shape - 1))
