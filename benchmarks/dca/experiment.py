"""One run: projected or not, summed with noise, regressed, and how far off test rows are."""

from collections.abc import Sequence

import jax
import numpy as np
from numpy.random import Generator

from benchmarks.dca.noise import (
    ASSUMED,
    SHARE,
    Budget,
    Constants,
    Matrix,
    honest,
    scale,
    squares_sensitivity,
    sums_sensitivity,
    thresholds,
)
from benchmarks.papers.marginal import conjugate_model
from benchmarks.papers.noisy_as_exact import posterior
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders import HolderStatistics
from inference.published.conjugate import ConjugatePrior

# Where a noisy variance is not positive.
SMALL = 0.5


def prior(features: int) -> ConjugatePrior:
    """λ = λ₀ = 1; what the paper does not have is as weak."""
    unit, two = np.eye(features), np.float64(2)
    freedom, zeros, one = np.float64(features + 2), np.zeros(features), np.float64(1)
    return ConjugatePrior(zeros, unit, two, one, unit, freedom, zeros, one)


def projection(rows: Matrix, budget: Budget, constants: Constants, random: Generator) -> Matrix:
    """(d + 1,) thresholds from noisy variances, which take SHARE of the budget (Algorithm 2, 1 to 3)."""
    records, columns = rows.shape
    spent, rest = budget.part(SHARE), budget.part(1 - SHARE)
    squares = np.sum(np.clip(rows, -ASSUMED, ASSUMED) ** 2, axis=0)
    sd = scale(spent, constants) * squares_sensitivity(columns, constants) * honest(records)
    variances = (squares + sd * random.normal(size=columns)) / records
    deviations = np.sqrt(np.where(variances > 0, variances, SMALL))
    # The authors search with the whole budget.
    of_x, of_y = thresholds(records, columns - 1, budget if constants == "published" else rest, constants)
    return np.minimum(deviations * np.append(np.full(columns - 1, of_x), of_y), ASSUMED)


def sums(rows: Matrix) -> Matrix:
    """Σ uuᵀ (d + 1, d + 1)."""
    return rows.T @ rows


def noisy_sums(
    rows: Matrix, bounds: Matrix, budget: Budget, constants: Constants, random: Generator
) -> Matrix:
    """The same with noise; y² is not released, and 0."""
    columns = rows.shape[1]
    sd = scale(budget, constants) * sums_sensitivity(bounds, constants) * honest(len(rows))
    noise = np.triu(sd * random.normal(size=(columns, columns)))
    found = sums(rows) + noise + np.triu(noise, 1).T
    found[-1, -1] = 0.0
    return np.asarray(found)


def error_of(line: Matrix, test: Matrix) -> float:
    """Mean absolute error on test rows."""
    return float(np.mean(np.abs(test[:, -1] - test[:, :-1] @ line)))


def projected_line(total: Matrix) -> Matrix:
    """projected_blr's posterior mean."""
    with jax.enable_x64(True):
        return np.asarray(posterior(total, prior(len(total) - 1))[0])


def svec_release(rows: Matrix, bounds: Matrix, budget: Budget, random: Generator) -> HolderStatistics:
    """What `table_statistics` would release: noise on products as for Σ c_j², √2 as much on squares, and y².

    ‖vvᵀ − wwᵀ‖ ≤ √2 Σ c_j².
    """
    columns = rows.shape[1]
    sd = scale(budget, "right") * float(np.sum(bounds**2))
    scales = np.where(np.eye(columns) > 0, np.sqrt(2), 1.0) * sd
    noise = np.triu(scales * random.normal(size=scales.shape))
    noisy = sums(rows) + noise + np.triu(noise, 1).T
    return HolderStatistics(noisy[None], scales, np.array([float(len(rows))]))


def marginal_lines(every: Sequence[HolderStatistics]) -> list[Matrix]:
    """marginal's posterior means."""
    models = [conjugate_model(one, prior(one.features)) for one in every]
    return list(posterior_draws(models, seed=0, draws=300)["theta"].mean(axis=1))
