"""Predictive checks: are the reports as a fit expects them, and as the prior did?

A check compares a statistic of the reports with its law under draws of the posterior, and gives a p-value.
There are three statistics. Counts of each kind of report, by groups of people, have scores that are normal in
every group (`p_values`). The counts of a histogram are tested as a whole (`Histogram`). Other summaries are
simulated, and compared by their distance from what is expected (`is_far`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtri

from inference.compiling import Program, raw_key
from inference.histogram import Histogram
from inference.likelihoods.common import CellCounts
from inference.likelihoods.regression.sums import RecordSums
from inference.models.base import Draws, Fit, Model
from inference.results.verdict import FALSE_ALARM, FIT, NOT_USABLE, NOTE, Finding
from inference.sampling.space import Arrays, as_arrays, reports_site
from inference.tail_probabilities import binomial_at_least, binomial_at_most, squares_beyond

Vector = NDArray[np.float64]
Shares = NDArray[np.float64]
Codes = NDArray[np.int64]

# The number of simulated summaries.
SIMULATED = 60
# Neighbouring entries of a summary are added up to so many groups.
MOST_ENTRIES = 24
# An entry is outside if it exceeds the simulated range by more than this part of the range.
SLACK = 0.1
# With a smaller share of groups inside, the observed summary surprises the prior.
FEW_INSIDE = 0.6
MISFIT = "the model does not fit these reports: its intervals describe another law"
TOO_NOISY = (
    "these reports are too few, under this much noise, to distinguish the law from two separate groups of "
    "people: intervals hold if the answers follow the law, but no check here could show that they do not"
)


@dataclass(frozen=True)
class Predictive:
    """Entries of a summary, per report, and what checks of the reports found.

    Attributes:
        prior: (simulated, groups) by the prior; None for a prior that expects anything.
        posterior: (simulated, groups) after the reports.
        observed: (groups,).
        against: findings against the model, and notes.
        people: {index of a group of people's first entry: the group's name}, for entries by groups of people.
    """

    prior: Shares | None
    posterior: Shares
    observed: Shares
    against: tuple[Finding, ...] = ()
    people: Mapping[int, str] = field(default_factory=dict)

    @property
    def surprised(self) -> bool:
        """Return True if the observed summary is outside the prior's predictive range."""
        return self.prior is not None and share_inside(self.prior, self.observed) < FEW_INSIDE

    @property
    def misfit(self) -> bool:
        """Return True if a check speaks against the model."""
        return any(finding.part == FIT and finding.state == NOT_USABLE for finding in self.against)

    def in_words(self) -> str:
        """Return one sentence on each of the two comparisons."""
        after = 100 * share_inside(self.posterior, self.observed)
        first = ""
        if self.prior is not None:
            inside = 100 * share_inside(self.prior, self.observed)
            first = f"The prior's predictive range contains {inside:.0f} % of the observed entries"
            first += (
                ": the reports surprise the prior. " if self.surprised else ": the prior allows the reports. "
            )
        second = f"After the fit, the posterior's predictive range contains {after:.0f} %"
        return first + second + (": the model does not fit." if self.misfit else ": no misfit shows.")

    def findings(self) -> Iterator[Finding]:
        """Yield what the checks found, then a note if the prior expected other reports."""
        yield from self.against
        if self.surprised:
            note = "the reports are outside the prior's predictive range: check the prior and the bounds"
            yield Finding(NOTE, note)


def share_inside(simulated: Shares, observed: Shares) -> float:
    """Return the share of groups whose observed entry is in or near the range of simulated entries."""
    # A very wide prior has draws that overflow.
    simulated = simulated[np.isfinite(simulated).all(axis=1)]
    if not len(simulated):
        return 0.0
    low, high = simulated.min(axis=0), simulated.max(axis=0)
    slack = SLACK * (high - low) + 1e-9 * (1 + np.abs(observed))
    return float(np.mean((observed >= low - slack) & (observed <= high + slack)))


# Summaries of a question's model.


def predict(model: Model, fit: Fit) -> Predictive | None:
    """Simulate summaries from the likelihood at draws of prior and posterior; None without reports."""
    summaries, random = model.summaries, np.random.default_rng(fit.seed)
    replicates, drawn = summaries.replicates, (some_draws(fit.prior_sites, 1), some_draws(fit.sites, 2))
    # Models of raw answers have no reports.
    n = replicates.n if replicates is not None else int(np.asarray(model.data.get("n", 0)))
    if n == 0:
        return None
    # 1. A model may simulate sums of reports itself.
    if replicates is not None:
        simulated = [
            np.stack(
                [
                    replicates.draw({name: values[place] for name, values in sites.items()}, random)
                    for place in range(SIMULATED)
                ]
            )
            for sites in drawn
        ]
        before, after, shown = (groups_of(values, n) for values in (*simulated, replicates.observed))
        return Predictive(before, after, shown, _far(after, shown))
    # 2. Otherwise its program has the law of the summary.
    with jax.enable_x64(True):
        data = as_arrays(model.data)
        each = jax.vmap(partial(_law, model), (0, 0, None))
        program = Program(
            lambda key, sites, data: each(jax.random.split(key, SIMULATED), sites, data), runs_once=True
        )
        laws = [program(raw_key(fit.seed), as_arrays(sites), data) for sites in drawn]
    observed = np.asarray(laws[0]["observed"], dtype=np.float64)[0].ravel()
    simulated = [
        np.asarray(law["sample"], dtype=np.float64).reshape(SIMULATED, -1)
        if "sample" in law
        # NumPy draws counts without a program to compile.
        else np.stack([random.multinomial(n, row / row.sum()) for row in np.asarray(law["cells"], float)])
        for law in laws
    ]
    before, after, shown = (groups_of(summaries.shown(values), n) for values in (*simulated, observed))
    if summaries.channel is None:
        return Predictive(before, after, shown, _far(after, shown))
    # 3. A whole histogram is tested.
    cells = np.asarray(laws[1]["cells"], dtype=np.float64)
    count = sum(int(np.prod(values.shape[2:])) for values in fit.sites.values())
    seen = Histogram(observed, cells[np.isfinite(cells).all(axis=1)], summaries.channel(), count)
    return Predictive(before, after, shown, tuple(of_histogram(seen, summaries.bounds)))


def of_histogram(seen: Histogram, bounds: tuple[float, float]) -> Iterator[Finding]:
    """Yield what a histogram shows against the law of a number with these bounds."""
    misfit = seen.p_value() < FALSE_ALARM
    if misfit:
        yield Finding(FIT, MISFIT)
    mean, (low, high) = seen.mean_without_law(), bounds
    if mean.p < FALSE_ALARM:
        ends = (mean.free - 1.645 * mean.error, mean.free, mean.free + 1.645 * mean.error, mean.of_law)
        first, middle, last, of_law = (f"{low + (high - low) * value:.4g}" for value in ends)
        reason = (
            f"without a law the mean of the answers is {middle} ({first} to {last}), by this law {of_law}: "
            "fit the model 'nonparametric' instead"
        )
        yield Finding(FIT, reason)
    if not (misfit or seen.tells_two_groups()):
        yield Finding(NOTE, TOO_NOISY)


def some_draws(sites: Draws, axes: int) -> dict[str, NDArray[np.float64]]:
    """Return evenly spaced finite draws, {site: (SIMULATED, …)}. axes: how many leading axes count draws."""
    flat = {name: np.asarray(values).reshape(-1, *values.shape[axes:]) for name, values in sites.items()}
    finite = [np.isfinite(values).reshape(len(values), -1).all(axis=1) for values in flat.values()]
    usable = np.flatnonzero(np.all(finite, axis=0))
    places = usable[np.linspace(0, len(usable) - 1, SIMULATED).astype(int)]
    return {name: values[places] for name, values in flat.items()}


def _law(model: Model, key: Array, sites: Arrays, data: Arrays) -> dict[str, Array]:
    """Return the observed summary, with its cells' probabilities if it counts reports, else with a sample."""
    site = reports_site(model, sites, data, key)
    law = site["fn"]
    if isinstance(law, RecordSums):
        return {"observed": law.observed_total, "sample": law.draw_total(key)}
    if isinstance(law, CellCounts):
        return {"observed": site["value"], "cells": law.cell_probs}
    return {"observed": site["value"], "sample": law.sample(key)}


def groups_of(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Entries (…, size) of summaries for each report, neighbours added up: (…, groups)."""
    parts = np.array_split(values, min(MOST_ENTRIES, values.shape[-1]), axis=-1)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1) / n


# The distance of a simulated summary. The model does not fit if all groups together are this much farther out
# than any simulated summary, and this improbable by the gamma law with the simulated distances' mean and
# variance. At most one sound model in a thousand exceeds both limits: 60 simulated summaries determine the
# gamma law no better.
MOST_STRAIN, LEAST_CHANCE = 1.3, 1e-4


def is_far(simulated: Shares, observed: Shares) -> bool:
    """Return True if an observed summary is farther from the expected one than simulated ones.

    Distances sum squares over the groups and their total, scaled by the spread of the other simulated
    summaries. simulated: (summaries, groups). observed: (groups,).
    """
    # Many single groups hide how many bits a report has in all.
    if observed.size > 1:
        simulated, observed = (
            np.concatenate([entries, entries.sum(axis=-1, keepdims=True)], axis=-1)
            for entries in (simulated, observed)
        )
    count, middle = len(simulated), simulated.mean(axis=0)
    away, floor = simulated - middle, 1e-9 * (1 + np.abs(observed))
    others_middle = -away / (count - 1)
    others_variance = (np.sum(away**2, axis=0) - away**2) / (count - 1) - others_middle**2
    each = np.sum((away - others_middle) ** 2 / np.maximum(others_variance, floor**2), axis=1)
    seen = float(np.sum((observed - middle) ** 2 / np.maximum(away.var(axis=0), floor**2)))
    mean, variance = float(each.mean()), max(float(each.var(ddof=1)), 1e-18)
    chance = gammaincc(max(mean**2, 1e-18) / variance, seen * max(mean, 1e-9) / variance)
    return bool(seen / max(each.max(), 1e-9) > MOST_STRAIN and chance < LEAST_CHANCE)


def _far(simulated: Shares, observed: Shares) -> tuple[Finding, ...]:
    return (Finding(FIT, MISFIT),) if is_far(simulated, observed) else ()


# Counts by groups of people. Groups whose count of a kind varies less carry almost no information, unless as
# many reports came that no fit expects.
LEAST_VARIANCE, MANY = 1.0, 10.0


def p_values(
    people: Vector, came: Vector, chances: Vector, columns: Mapping[str, Codes]
) -> Iterator[tuple[float, str]]:
    """Yield p-values of one kind of report in the levels of columns, with the column's name.

    For each column these are of a sum of squares over its levels, of the farthest level, and of a trend. Each
    level's count becomes a normal score of the binomial law, scaled to the spread of people with different
    chances. That spread is wide enough: reports that the fit has seen are closer to it than new reports.

    Args:
        people: (rows,) people with the same chances.
        came: (rows,) their reports of the kind.
        chances: (rows,) that a report is of the kind, by the fit.
        columns: {name: (rows,) each row's ordered level}.
    """
    chances = np.clip(chances, 0.0, 1.0)
    for name, levels in columns.items():
        inside = (levels == np.unique(levels)[:, None]).astype(np.float64)
        variance = inside @ (people * chances * (1 - chances))
        unexpected = np.abs(inside @ (came - people * chances)) >= MANY
        told = np.flatnonzero((variance > LEAST_VARIANCE) | (unexpected & (variance > 0)))
        if not len(told):
            continue
        inside, variance = inside[told], variance[told]
        sizes, counts = np.round(inside @ people), np.round(inside @ came)
        chance = inside @ (people * chances) / sizes
        # The middle of each count's probability.
        below = (binomial_at_most(counts, sizes, chance) + binomial_at_most(counts - 1, sizes, chance)) / 2
        above = (binomial_at_least(counts, sizes, chance) + binomial_at_least(counts + 1, sizes, chance)) / 2
        least = np.clip(np.minimum(below, above), 1e-300, 0.5)
        scores = np.where(above < below, -1, 1) * ndtri(least)
        scores *= np.sqrt(sizes * chance * (1 - chance) / variance)
        yield squares_beyond(float(scores @ scores), len(scores)), name
        if len(scores) > 1:
            yield len(scores) * squares_beyond(float(np.max(scores**2)), 1), name
            weights = (told - np.average(told, weights=variance)) * np.sqrt(variance)
            yield squares_beyond(float((weights @ scores) ** 2 / (weights @ weights)), 1), name
