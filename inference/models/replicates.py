"""Simulated sums of reports for predictive checks of likelihoods that take reports one by one."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws, Replicates
from inference.results.intervals import REFUSED
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.subset_selection import SubsetSelection

Values = NDArray[np.float64]

# Edges of each perturbed feature's cells, from one noise sd below the lower bound to one above the upper.
EDGES = 5


def supports(mechanism: ChoiceMechanism, observed: Values, n: int) -> Replicates:
    """Return replicates of the number of n reports that support each choice (k,)."""
    if isinstance(mechanism, SubsetSelection):
        return Replicates(n, observed, partial(_subsets, mechanism, n))
    return Replicates(n, observed, partial(_bits, mechanism, n))


def _bits(mechanism: ChoiceMechanism, n: int, sites: Draws, random: Generator) -> Values:
    counts = random.multinomial(n, _shares(sites))
    own = random.binomial(counts, float(mechanism.p))
    return np.asarray(own + random.binomial(n - counts, float(mechanism.q)), np.float64)


def _subsets(mechanism: SubsetSelection, n: int, sites: Draws, random: Generator) -> Values:
    """Simulate subset reports: a set is the `size` smallest random numbers.

    The person's own choice gets the smallest number to be in the set, or the largest to be outside.
    """
    shares = _shares(sites)
    order = random.random((n, len(shares)))
    own = random.choice(len(shares), size=n, p=shares)
    order[np.arange(n), own] = np.where(random.random(n) < float(mechanism.p), -1.0, 2.0)
    sets = np.argpartition(order, mechanism.size - 1, axis=1)[:, : mechanism.size]
    return np.bincount(sets.ravel(), minlength=len(shares)).astype(np.float64)


def correlated_supports(
    mechanism: ChoiceMechanism, rows: NDArray[np.uint8], counts: NDArray[np.int64]
) -> Replicates:
    """Return replicates of the support of each choice (k,), for supports of unknown correlation.

    rows: packed sets (sets, bytes); counts: the reports of each set. The means follow from p, q and the
    shares. The covariance comes from the reports, whose deviations are weighted by normal numbers (the
    multiplier bootstrap).
    """
    rows, counts = rows[counts > 0], counts[counts > 0]
    n = int(counts.sum())
    observed = counts @ np.unpackbits(rows, axis=1, bitorder="little", count=mechanism.choices)
    return Replicates(n, observed.astype(np.float64), partial(_correlated, mechanism, rows, counts))


def _correlated(
    mechanism: ChoiceMechanism,
    rows: NDArray[np.uint8],
    counts: NDArray[np.int64],
    sites: Draws,
    random: Generator,
) -> Values:
    p, q, n = float(mechanism.p), float(mechanism.q), counts.sum()
    weights = np.sqrt(counts) * random.normal(size=len(counts))
    weights -= counts * weights.sum() / n
    bits = np.unpackbits(rows, axis=1, bitorder="little", count=mechanism.choices)
    return np.asarray(n * (q + (p - q) * _shares(sites)) + weights @ bits)


def _shares(sites: Draws) -> Values:
    """Return the share of each choice, refusals last if present; for a yes/no, `p` is the share of yes."""
    found = np.asarray(sites["p"])
    shares = np.maximum(found if found.ndim else np.stack([1 - found, found]), 0)
    if REFUSED in sites:
        shares = np.append((1 - sites[REFUSED]) * shares, sites[REFUSED])
    return np.asarray(shares / shares.sum())


def records(mechanism: GaussianYesNoRecord, rows: Values) -> Replicates:
    """Return replicates of the counts of perturbed features by cell, separately for reported yes and no.

    rows (n, d + 1): perturbed features in scaled units and the reported response, 1 or 0.
    """
    noise = float(mechanism.feature_noise_sd)
    drawn = partial(_records, mechanism, len(rows), noise)
    return Replicates(len(rows), _cells(rows, noise), drawn)


def _records(mechanism: GaussianYesNoRecord, n: int, noise: float, sites: Draws, random: Generator) -> Values:
    sd = sites["feature_sd"]
    # The site is a factor of the correlation matrix; with one feature it does not exist.
    root = sites.get("feature_correlation", np.eye(len(sd))) * sd[:, None]
    x = sites["feature_mean"] + random.normal(size=(n, len(sd))) @ root.T
    chance = 1 / (1 + np.exp(np.clip(-(sites["intercept"] + x @ sites["coefficients"]), -700, 700)))
    yes = random.random(n) < chance
    told = random.random(n) < np.where(yes, float(mechanism.p), float(mechanism.q))
    return _cells(np.column_stack([x + noise * random.normal(size=x.shape), told]), noise)


def _cells(rows: Values, noise: float) -> Values:
    """Count perturbed features by feature, response and cell, (d × 2 × (EDGES + 1),)."""
    edges = np.linspace(-1 - noise, 1 + noise, EDGES)
    told = rows[:, -1] > 0.5
    counts = [
        np.bincount(np.searchsorted(edges, column[said]), minlength=EDGES + 1)
        for column in rows[:, :-1].T
        for said in (told, ~told)
    ]
    return np.concatenate(counts).astype(np.float64)
