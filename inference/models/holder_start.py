"""Where chains start: a moment estimate that no noise can make impossible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics, Matrix

# In scaled units. Features and slopes beyond these, and less spread than this, are noise or will be found.
LARGEST_MEAN, LARGEST_SLOPE, LEAST_SPREAD = 0.9, 2.0, 0.05


class Start(NamedTuple):
    """Intercept, coefficients (d,), residual sd; the features' mean (d,) and covariance (d, d)."""

    intercept: float
    coefficients: Matrix
    sd: float
    feature_mean: Matrix
    feature_covariance: Matrix


def moment_start(statistics: HolderStatistics, rows: Matrix) -> Start:
    """From the holders' total over so many rows (j,), each covariance at least as large as its noise."""
    d = statistics.features
    mean, covariance = mean_and_covariance(statistics, rows)
    values, axes = np.linalg.eigh(covariance[:d, :d])
    floor = np.clip(_noise_level(statistics, rows), LEAST_SPREAD**2, 0.25)
    features = (axes * np.clip(values, floor, 4.0)) @ axes.T
    slopes = np.linalg.solve(features, covariance[:d, d])
    slopes = slopes * min(1.0, LARGEST_SLOPE / max(float(np.linalg.norm(slopes)), 1e-9))
    variance = covariance[d, d] - slopes @ features @ slopes
    known = statistics.has_squares and variance > LEAST_SPREAD**2
    sd = float(np.sqrt(min(variance, 1.0))) if known else 0.3
    return Start(float(mean[d] - slopes @ mean[:d]), slopes, sd, mean[:d], features)


def mean_and_covariance(statistics: HolderStatistics, rows: Matrix) -> tuple[Matrix, Matrix]:
    """Of the records (x, y), (d + 1,) and (d + 1, d + 1)."""
    k, constant = statistics.average, int(statistics.intercept)
    summed = max(float(rows.sum()), 1.0)
    total = np.where(np.isfinite(statistics.noise), statistics.sums.sum(axis=0), 0.0) / summed
    mean = np.zeros(statistics.features + 1)
    if constant:
        mean = np.clip(total[0, 1:] / k, -LARGEST_MEAN, LARGEST_MEAN)
    second = total[constant:, constant:]
    return mean, second - k * np.outer(mean, mean)


def _noise_level(statistics: HolderStatistics, rows: Matrix) -> float:
    """The noise's largest sd in the mean of a product of features."""
    first = int(statistics.intercept)
    largest = float(np.max(statistics.noise[first:-1, first:-1]))
    return float(largest * np.sqrt(statistics.holders) / max(float(rows.sum()), 1.0))
