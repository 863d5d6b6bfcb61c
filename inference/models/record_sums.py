"""The model of noisy sums of records' second moments: of all devices, or of each data holder."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from scipy.special import log_ndtr

from inference.default_priors import has_yes_no_response
from inference.likelihoods import holders
from inference.likelihoods.holders import HolderStatistics, Matrix
from inference.likelihoods.regression.moments import Moments, linear_moments, logistic_moments
from inference.likelihoods.regression.sums import DenseSums, NoisySums, RecordSums, Total
from inference.models.base import TARGET_ACCEPTANCE, Check, Model, Sampling
from inference.models.clipping import NOISE_SDS, ClippedMoments
from inference.models.regression import Scale, draw_sites, first_values
from schemas import Question

# Limit of an estimated mean, in scaled units.
LARGEST_MEAN = 0.9
# A count this many noise sds above 0 is used unchanged, with the noise's variance.
CERTAIN = 4.0
# Most released entries, of one holder and of all holders, for which dense matrices are still fast.
MOST_ENTRIES, MOST_SCALES = 120, 1000
# If a Laplace noise scale is very small, its entry has up to ten times less room. At acceptance 0.9, one to
# ten of 4,000 transitions diverge there, whether scales are drawn as logarithms or as normal quantiles; at
# 0.98 at most one.
LAPLACE_ACCEPTANCE = 0.995
# Posteriors of so many fields under Gaussian noise need half the gradients of acceptance 0.9, for two thirds
# of the effective draws. One fit in nine diverges and draws again; of fewer fields at ε = 0.5 three in four.
MANY_FIELDS, MANY_FIELDS_ACCEPTANCE = 10, 0.8


def sums_model(
    question: Question,
    statistics: HolderStatistics,
    n: int,
    notes: tuple[str, ...],
    checks: tuple[Check, ...] = (),
) -> Model:
    """Return a regression on x ~ Normal(mean, covariance), given the sums of n records.

    Without an intercept both means are 0, at the middle of the bounds, as in the papers, because the sums do
    not determine them.
    """
    found, constant = observed(statistics), statistics.intercept

    def program(n: int, **data: Array) -> None:
        del n
        sites = draw_sites(question, central=not constant)
        if has_yes_no_response(question):
            moments = logistic_moments(**sites)
        else:
            moments = linear_moments(**sites, constant=constant, average=statistics.average)
        numpyro.sample("reports", found.law(moments, data), obs=jnp.asarray(data["statistics"]))

    return Model(
        program,
        {"n": n, **found.data},
        {**first_values(question, central=not constant), **found.initial},
        Scale(question).parameters,
        notes,
        checks,
        sampling=Sampling(found.target_acceptance),
    )


class Observed(NamedTuple):
    """data: a program's arrays. law: (moments, data) -> law of data["statistics"].

    initial: values of the law's sites. target_acceptance: for a posterior under this likelihood.
    """

    data: Mapping[str, Matrix]
    law: Callable[[Moments, Mapping[str, Array]], RecordSums]
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


def _shape(statistics: HolderStatistics) -> holders.NoiseShape | None:
    return holders.noise_shape(statistics.noise, statistics.intercept)


def _released(statistics: HolderStatistics) -> Any:
    """Return which entries (p, p) above the diagonal were released, without the number of records."""
    released = np.triu(np.isfinite(statistics.noise))
    released[0, 0] &= not statistics.intercept
    return released


def clipped_moments(statistics: HolderStatistics, rows: Rows) -> ClippedMoments:
    """Return moments of the clipped records, by which clipping shows.

    Each noisy count is taken at its largest plausible value, so that the squares are the least.
    """
    k, first = statistics.average, int(statistics.intercept)
    most = max(float(np.sum(rows.expected + NOISE_SDS * np.sqrt(rows.variance))), 1.0)
    total = statistics.sums.sum(axis=0) / most
    mean = np.zeros(statistics.features + 1)
    if first:
        mean = np.clip(total[0, 1:] / k, -LARGEST_MEAN, LARGEST_MEAN)
    noise = np.sqrt(np.diag(statistics.noise_variance)[first:] * statistics.holders) / most
    return ClippedMoments(mean, np.diag(total)[first:] - (k - 1) * mean**2, noise, most)


def _total(statistics: HolderStatistics, rows: Rows) -> Mapping[str, Matrix]:
    """Return the fields of `Total`."""
    variance = np.where(_released(statistics), statistics.noise_variance, 0.0)
    return {
        "total": statistics.sums.sum(axis=0),
        "rows": rows.expected.sum(),
        "rows_variance": rows.variance.sum(),
        "noise_variance": statistics.holders * variance,
    }


def _fast(statistics: HolderStatistics, shape: holders.NoiseShape) -> Observed:
    rows, constant = rows_of(statistics), statistics.intercept
    scaled = statistics.sums / np.outer(shape.scale, shape.scale)
    if constant:
        scaled[:, 0, 0] = rows.expected * statistics.average / shape.scale[0] ** 2
    alike = bool(np.all(rows.variance == rows.variance[:1]))
    sums, groups = (holders.grouped if alike else holders.one_by_one)(scaled, rows.expected)
    data = {"statistics": sums, **groups._asdict(), **_total(statistics, rows)}
    data |= {"scale": np.asarray(shape.scale), "excess": np.asarray(shape.excess)}
    if statistics.count_sd > 0:
        variance = rows.variance[:1] if alike else rows.variance
        data["count_variance"] = np.broadcast_to(variance, groups.at.shape)

    def law(moments: Moments, data: Mapping[str, Array]) -> RecordSums:
        noise = holders.NoiseShape(data["scale"], shape.places, data["excess"])
        groups, total = _fields(holders.HolderGroups, data), _fields(Total, data)
        return NoisySums(moments, groups, noise, data.get("count_variance"), total)

    target = MANY_FIELDS_ACCEPTANCE if len(shape.scale) >= MANY_FIELDS else TARGET_ACCEPTANCE
    return Observed(data, law, {}, target)


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

    def law(moments: Moments, data: Mapping[str, Array]) -> RecordSums:
        variances = data["variances"]
        if laplace:
            # Laplace noise is normal noise whose variance is exponential (DPBLR II-B4).
            scales = dist.Exponential(jnp.ones(variances.shape)).to_event(2)
            variances = variances * numpyro.sample("noise_scale", scales)
        counts, total = (data["records"], data["count_variance"]), _fields(Total, data)
        return DenseSums(moments, *counts, variances, pairs, total)

    if not laplace:
        return Observed(data, law, {})
    return Observed(data, law, {"noise_scale": np.ones(data["variances"].shape)}, LAPLACE_ACCEPTANCE)


def _fields(kind: Any, data: Mapping[str, Array]) -> Any:
    """Return the named tuple whose fields are among the data."""
    return kind(*(data[name] for name in kind._fields))
