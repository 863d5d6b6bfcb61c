"""Simulated sums of reports for predictive checks of likelihoods that take reports one by one."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws, Replicates
from inference.results.intervals import REFUSED
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_record import GaussianRecord

Values = NDArray[np.float64]

# Edges of each perturbed feature's cells, from one noise sd below the lower bound to one above the upper.
EDGES = 5


def supports(mechanism: ChoiceMechanism, rows: NDArray[np.uint8], counts: NDArray[np.int64]) -> Replicates:
    """Return replicates of the number of reports that support each choice, (k,).

    rows: packed sets (sets, bytes); counts: the reports of each set. The means follow from p, q and the
    shares. The covariance comes from the reports, whose deviations are weighted by normal numbers (the
    multiplier bootstrap).
    """
    rows, counts = rows[counts > 0], counts[counts > 0]
    p, q, n = float(mechanism.p), float(mechanism.q), int(counts.sum())
    bits = np.unpackbits(rows, axis=1, bitorder="little", count=mechanism.choices)

    def draw(sites: Draws, random: Generator) -> Values:
        weights = np.sqrt(counts) * random.normal(size=len(counts))
        weights -= counts * weights.sum() / n
        return np.asarray(n * (q + (p - q) * _shares(sites)) + weights @ bits)

    return Replicates(n, (counts @ bits).astype(np.float64), draw)


def _shares(sites: Draws) -> Values:
    """Return the share of each choice, refusals last if present; for a yes/no, `p` is the share of yes."""
    found = np.asarray(sites["p"])
    shares = np.maximum(found if found.ndim else np.stack([1 - found, found]), 0)
    if REFUSED in sites:
        shares = np.append((1 - sites[REFUSED]) * shares, sites[REFUSED])
    return np.asarray(shares / shares.sum())


def records(mechanism: GaussianRecord, rows: Values) -> Replicates:
    """Return replicates of the counts of perturbed features by cell, separately for reported yes and no.

    rows (n, d + 1): perturbed features in scaled units and the reported response, 1 or 0.
    """
    n, noise = len(rows), float(mechanism.feature_noise_sd)

    def draw(sites: Draws, random: Generator) -> Values:
        sd = sites["feature_sd"]
        # The site is a factor of the correlation matrix; with one feature it does not exist.
        root = sites.get("feature_correlation", np.eye(len(sd))) * sd[:, None]
        x = sites["feature_mean"] + random.normal(size=(n, len(sd))) @ root.T
        chance = 1 / (1 + np.exp(np.clip(-(sites["intercept"] + x @ sites["coefficients"]), -700, 700)))
        yes = random.random(n) < chance
        told = random.random(n) < np.where(yes, float(mechanism.p), float(mechanism.q))
        return _cells(np.column_stack([x + noise * random.normal(size=x.shape), told]), noise)

    return Replicates(n, _cells(rows, noise), draw)


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
