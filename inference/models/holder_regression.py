"""A study's linear regression for data holders: the study's priors with the holders' likelihood.

Chains start at a moment estimate that is valid under any noise. Notes warn if the error of the normal
approximation of a holder's sums can matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray
from scipy.special import log_ndtr

from inference.likelihoods.holders.groups import HolderGroups, NoiseShape, grouped, noise_shape, one_by_one
from inference.likelihoods.holders.law import HolderEntries, HolderLaw, HolderSums, Total, second_moments
from inference.likelihoods.holders.statistics import HolderStatistics, Matrix
from inference.models.base import TARGET_ACCEPTANCE, Draws, Model, Sampling
from inference.models.clipping import NOISE_SDS, Moments, clipping_notes
from inference.models.regression import Scale, coefficients, draw_sites, feature_covariance, residual_sd
from ldp_client.documents.errors import InputError
from schemas import Question

# Limits of the moment start, in scaled units. Values beyond them are noise, or the sampler will find them.
LARGEST_MEAN, LARGEST_SLOPE, LEAST_SPREAD = 0.9, 2.0, 0.05


def moment_start(statistics: HolderStatistics, rows: Matrix) -> dict[str, object]:
    """Estimate starting values from the total over rows (j,); no covariance is smaller than its noise."""
    first, d, summed = int(statistics.intercept), statistics.features, max(float(rows.sum()), 1.0)
    mean, covariance = mean_and_covariance(statistics, rows)
    # The noise's largest sd in the mean of a product of features.
    noise = np.max(statistics.noise[first:-1, first:-1]) * np.sqrt(statistics.holders) / summed
    values, axes = np.linalg.eigh(covariance[:d, :d])
    features = (axes * np.clip(values, np.clip(noise, LEAST_SPREAD**2, 0.25), 4.0)) @ axes.T
    slopes = np.linalg.solve(features, covariance[:d, d])
    slopes = slopes * min(1.0, LARGEST_SLOPE / max(float(np.linalg.norm(slopes)), 1e-9))
    variance = covariance[d, d] - slopes @ features @ slopes
    known = statistics.has_squares and variance > LEAST_SPREAD**2
    spread = np.sqrt(np.diag(features))
    start: dict[str, object] = {
        "coefficients": slopes,
        "sd": float(np.sqrt(min(variance, 1.0))) if known else 0.3,
        "feature_sd": spread,
    }
    if d > 1:
        # Shrink the estimate a little: chains must not start at the edge of the parameter space.
        correlation = 0.9 * features / np.outer(spread, spread) + 0.1 * np.eye(d)
        start["feature_correlation"] = np.linalg.cholesky(correlation)
    if statistics.intercept:
        start |= {"intercept": float(mean[d] - slopes @ mean[:d]), "feature_mean": mean[:d]}
    return start


def mean_and_covariance(statistics: HolderStatistics, rows: Matrix) -> tuple[Matrix, Matrix]:
    """Return mean (d + 1,) and covariance (d + 1, d + 1) of the records (x, y)."""
    k, constant = statistics.average, int(statistics.intercept)
    summed = max(float(rows.sum()), 1.0)
    total = statistics.sums.sum(axis=0) / summed
    mean = np.zeros(statistics.features + 1)
    if constant:
        mean = np.clip(total[0, 1:] / k, -LARGEST_MEAN, LARGEST_MEAN)
    second = total[constant:, constant:]
    return mean, second - k * np.outer(mean, mean)


# With this many rows, errors were 1.06 times the stated sd (two features, almost no noise).
MANY_ROWS = 100


ONE_SD = (
    "the response is taken to vary by one sd whatever the features are, which these sums cannot confirm: if "
    "its spread depends on a feature, such as stays that vary more on one ward, that coefficient's interval "
    "may be too short"
)


def clipped_records_notes(question: Question, statistics: HolderStatistics, rows: Rows) -> tuple[str, ...]:
    """Return notes if so many of the holders' records were clipped that the line describes other values."""
    if statistics.holders == 0:
        return ()
    # Take each noisy count at its largest plausible value, so that squares are the least.
    most = rows.expected + NOISE_SDS * np.sqrt(rows.variance)
    mean, covariance = mean_and_covariance(statistics, most)
    first = int(statistics.intercept)
    noise = np.sqrt(np.diag(statistics.noise_variance)[first:] * statistics.holders) / most.sum()
    return clipping_notes(question, Moments(mean, np.diag(covariance) + mean**2, noise, most.sum()))


def small_holders_note(statistics: HolderStatistics, rows: Matrix) -> tuple[str, ...]:
    """Return a note if most holders have few rows, and less noise than their own sums' spread.

    The likelihood's mean and covariance are exact for any number of rows. But sums over few rows are skewed,
    and stated sds are too small if noise does not hide that. Measured with records in the middle of their
    bounds, two features and almost no noise: errors of 1.5 stated sds at 5 rows, 1.2 at 20, 1.06 at 100. With
    five features: up to 1.65.
    """
    first = int(statistics.intercept)
    d = statistics.features
    noise = np.diag(statistics.noise)[first : first + d]
    squares = np.diagonal(statistics.sums, axis1=1, axis2=2)[:, first : first + d]
    own = np.sqrt(2 / rows[:, None]) * np.maximum(squares, 0)
    skewed = (rows < MANY_ROWS) & np.any(own > noise, axis=1)
    if 2 * int(skewed.sum()) <= len(rows):
        return ()
    return (
        f"most holders have fewer than {MANY_ROWS} rows and little noise: their sums are skewed, and "
        "intervals may be too narrow. With two features, errors were 1.5 times the stated sd at 5 rows and "
        "1.2 times at 20; more features increase them",
    )


def holder_regression(question: Question, statistics: HolderStatistics) -> Model:
    """Return the model y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance).

    Without an intercept both means are 0, at the middle of the bounds, as in the papers, because the sums do
    not determine them. Raises InputError for statistics or priors without a likelihood.
    """
    _check(question, statistics)
    found = observed(statistics)
    constant, average = statistics.intercept, statistics.average

    def program(n: int, statistics: Array, **data: Array) -> None:
        del n
        sites = draw_sites(question) if constant else _central_sites(question)
        second = second_moments(**sites, constant=constant, average=average)
        observe(found.law(second, data), jnp.asarray(statistics))

    counted = rows_of(statistics)
    rows = counted.expected
    n = round(float(rows.sum()) * average)
    initial = {**moment_start(statistics, rows), **found.initial}
    return Model(
        program,
        {"n": n, **found.data},
        initial,
        parameters_of(question, constant),
        (
            ONE_SD,
            *clipped_records_notes(question, statistics, counted),
            *small_holders_note(statistics, rows),
        ),
        sampling=Sampling(found.target_acceptance),
    )


def _check(question: Question, statistics: HolderStatistics) -> None:
    why = refusal(statistics)
    if why:
        raise InputError(
            f"{question.id}: marginal does not take these statistics: {why}", code="fit.marginal_statistics"
        )
    if not statistics.intercept and "feature_mean" in question.model.prior:
        raise InputError(
            f"{question.id}: a prior of feature_mean needs statistics with an intercept",
            code="prior.feature_mean_without_intercept",
        )


def _central_sites(question: Question) -> dict[str, Any]:
    return {
        "intercept": 0.0,
        "coefficients": coefficients(question),
        "feature_mean": 0.0,
        "feature_covariance": feature_covariance(question),
        "sd": residual_sd(question),
    }


def parameters_of(question: Question, constant: bool) -> Callable[[Draws], dict[str, NDArray[np.float64]]]:
    """Return a function from draws in scaled units to intercept, coefficient[feature] and sd in own units.

    Without a constant the line passes through the middle of all bounds, and there is no intercept.
    """
    scale = Scale(question)

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        shape = np.asarray(draws["coefficients"]).shape[:-1]
        named = scale.parameters({"intercept": np.zeros(shape), **draws})
        if not constant:
            del named["intercept"]
        return named

    return parameters


# A count this many noise sds above 0 is used unchanged, with the noise's variance.
CERTAIN = 4.0
# Most released entries, of one holder and of all holders, for which dense matrices are still fast.
MOST_ENTRIES, MOST_SCALES = 120, 1000
# If a Laplace noise scale is very small, its entry has up to ten times less room. At acceptance 0.9, one to
# ten of 4,000 transitions diverge there, whether scales are drawn as logarithms or as normal quantiles; at
# 0.98 at most one.
LAPLACE_ACCEPTANCE = 0.995


class Observed(NamedTuple):
    """data: a program's arrays. law: (M, data) -> law of data["statistics"].

    initial: values of the law's sites. target_acceptance: for a posterior under this likelihood.
    """

    data: Mapping[str, Matrix]
    law: Callable[[Array, Mapping[str, Array]], HolderLaw]
    initial: Mapping[str, object]
    target_acceptance: float = TARGET_ACCEPTANCE


class Rows(NamedTuple):
    """Expected number (j,) of rows that each holder summed, and its variance (j,) due to noise."""

    expected: Matrix
    variance: Matrix


def refusal(statistics: HolderStatistics) -> str:
    """Return why there is no likelihood for these statistics, or ""."""
    if np.any(statistics.noise[_released(statistics)] == 0):
        return "it needs noise on every sum"
    if statistics.law == "gaussian" and _shape(statistics) is not None:
        return ""
    entries = int(_released(statistics).sum())
    if statistics.law == "laplace" and entries * statistics.holders > MOST_SCALES:
        return (
            f"Laplace noise on {entries * statistics.holders} sums is too much: at most {MOST_SCALES} of all "
            "holders; Gaussian noise has no such limit"
        )
    if entries > MOST_ENTRIES:
        return f"noise of this shape needs dense matrices, for {MOST_ENTRIES} sums of a holder at most"
    return ""


def observed(statistics: HolderStatistics) -> Observed:
    """Return the likelihood's data: the fast form if the Gaussian noise allows it, else the dense form."""
    shape = _shape(statistics) if statistics.law == "gaussian" else None
    return _dense(statistics) if shape is None else _fast(statistics, shape)


def observe(law: HolderLaw, statistics: Array) -> None:
    """Add the observed site to a program."""
    numpyro.sample("reports", law, obs=statistics)


def rows_of(statistics: HolderStatistics) -> Rows:
    """Estimate the rows behind the counts; the number of records behind a noisy count is at least 1."""
    counts, sd = np.asarray(statistics.counts, float), statistics.count_sd
    if sd == 0:
        return Rows(counts / statistics.average, np.zeros(len(counts)))
    edge = (1 - counts) / sd
    tail = np.exp(-(edge**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(-edge))
    mean = np.maximum(counts + sd * tail, 1.0)
    share = np.clip(1 + edge * tail - tail**2, 1e-6, 1.0)
    certain = counts >= CERTAIN * sd
    mean, share = np.where(certain, np.maximum(counts, 1.0), mean), np.where(certain, 1.0, share)
    return Rows(mean / statistics.average, share * (sd / statistics.average) ** 2)


def _shape(statistics: HolderStatistics) -> NoiseShape | None:
    return noise_shape(statistics.noise, statistics.intercept)


def _released(statistics: HolderStatistics) -> Any:
    """Return which entries (p, p) above the diagonal were released, without the number of records."""
    released = np.triu(np.isfinite(statistics.noise))
    released[0, 0] &= not statistics.intercept
    return released


def _total(statistics: HolderStatistics, rows: Rows) -> Mapping[str, Matrix]:
    """Return the fields of `Total`."""
    variance = np.where(_released(statistics), statistics.noise_variance, 0.0)
    return {
        "total": np.where(_released(statistics), statistics.sums.sum(axis=0), 0.0),
        "rows": rows.expected.sum(),
        "rows_variance": rows.variance.sum(),
        "noise_variance": statistics.holders * variance,
    }


def _fast(statistics: HolderStatistics, shape: NoiseShape) -> Observed:
    rows, constant = rows_of(statistics), statistics.intercept
    scaled = statistics.sums / np.outer(shape.scale, shape.scale)
    if constant:
        scaled[:, 0, 0] = rows.expected * statistics.average / shape.scale[0] ** 2
    alike = bool(np.all(rows.variance == rows.variance[:1]))
    sums, groups = (grouped if alike else one_by_one)(scaled, rows.expected)
    data = {"statistics": sums, **groups._asdict(), **_total(statistics, rows)}
    data |= {"scale": np.asarray(shape.scale), "excess": np.asarray(shape.excess)}
    if statistics.count_sd > 0:
        variance = rows.variance[:1] if alike else rows.variance
        data["count_variance"] = np.broadcast_to(variance, groups.at.shape)

    def law(second: Array, data: Mapping[str, Array]) -> HolderLaw:
        noise = NoiseShape(data["scale"], shape.places, data["excess"])
        groups, total = _fields(HolderGroups, data), _fields(Total, data)
        return HolderSums(second, groups, data.get("count_variance"), noise, constant=constant, total=total)

    return Observed(data, law, {})


def _dense(statistics: HolderStatistics) -> Observed:
    rows, pairs = rows_of(statistics), np.argwhere(_released(statistics))
    first, second_index = pairs.T
    variance, laplace = statistics.noise_variance[first, second_index], statistics.law == "laplace"
    data = {
        "statistics": statistics.sums[:, first, second_index],
        "records": rows.expected,
        "count_variance": rows.variance,
        "variances": np.broadcast_to(variance, (statistics.holders, len(variance))),
        **_total(statistics, rows),
    }

    def law(second: Array, data: Mapping[str, Array]) -> HolderLaw:
        variances = data["variances"]
        if laplace:
            # Laplace noise is normal noise whose variance is exponential (DPBLR II-B4).
            scales = dist.Exponential(jnp.ones(variances.shape)).to_event(2)
            variances = variances * numpyro.sample("noise_scale", scales)
        return HolderEntries(
            second,
            data["records"],
            data["count_variance"],
            variances,
            pairs,
            constant=statistics.intercept,
            total=_fields(Total, data),
        )

    if not laplace:
        return Observed(data, law, {})
    return Observed(data, law, {"noise_scale": np.ones(data["variances"].shape)}, LAPLACE_ACCEPTANCE)


def _fields(kind: Any, data: Mapping[str, Array]) -> Any:
    """Return the named tuple whose fields are among the data."""
    return kind(*(data[name] for name in kind._fields))
