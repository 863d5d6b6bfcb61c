"""Counts, which add up, of reports further out than answers and noise can plausibly put them.

A sum of reports does not show whether a few of them were out by sixteen standard deviations of the noise,
which moves it as a thousand honest people would. Under Gaussian noise on every entry these counts have a law
that bounds them from above whatever the answers are, so that they show such reports without any model.
"""

from functools import lru_cache
from math import isqrt, log, sqrt
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.strips import NOISE_REACH
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS, GaussianStatistics
from summaries.reductions.base import signed

SD = 1 << NOISE_BITS
# Limits, in sds beyond an entry's bound; entries beyond each limit are counted.
ENTRY_SDS = (3, 4, 5, 6)
# Reports are also counted if their norm exceeds the bound plus noise with at most these probabilities.
NORM_CHANCES = (1e-3, 1e-5, 1e-7)
# Squares are summed in units of (sd / PARTS)²: for 2**34 reports below 2**63.
PARTS = 1 << 8
SIZE = len(ENTRY_SDS) + len(NORM_CHANCES) + 1


class Reach(NamedTuple):
    """bounds (entries,): of each entry without noise. norm: of all entries together. Both in grid units."""

    bounds: NDArray[np.int64]
    norm: int


def has_tails(mechanism: Mechanism) -> bool:
    """Return True if every entry of the mechanism's reports carries its own Gaussian noise."""
    return isinstance(mechanism, GaussianStatistics | GaussianRecord)


def tails(mechanism: Mechanism, payloads: NDArray[np.uint8]) -> NDArray[np.int64] | None:
    """Count entries, then reports, beyond each limit, and sum the squared norms: (SIZE,).

    The sum is in units of (sd / PARTS)². None without such noise.
    """
    if not has_tails(mechanism):
        return None
    reach = reach_of(mechanism)
    entries = signed(payloads[:, : 4 * len(reach.bounds)]).astype(np.int64)
    beyond = np.abs(entries) - reach.bounds
    far = [int((beyond > sds * SD).sum()) for sds in ENTRY_SDS]
    squares = (entries.astype(np.float64) ** 2).sum(axis=1)
    limits = [reach.norm + noise_norm(len(reach.bounds), chance) * SD for chance in NORM_CHANCES]
    long = [int((squares > limit**2).sum()) for limit in limits]
    energy = int(np.rint(squares * (PARTS / SD) ** 2).astype(np.int64).sum())
    return np.asarray([*far, *long, energy], dtype=np.int64)


def possible_tails(mechanism: Mechanism, n: int, counts: NDArray[np.int64]) -> bool:
    """Return True if n reports can have these counts: a value beyond one limit is beyond all lower ones."""
    if not has_tails(mechanism) or len(counts) != SIZE or counts.min() < 0:
        return False
    far, norms = counts[: len(ENTRY_SDS)], counts[len(ENTRY_SDS) : -1]
    falling = (np.diff(far) <= 0).all() and (np.diff(norms) <= 0).all()
    return bool(falling and far[0] <= n * len(reach_of(mechanism).bounds) and norms[0] <= n)


@lru_cache(maxsize=256)
def noise_norm(entries: int, chance: float) -> float:
    """Return a bound that the norm of so many standard normals exceeds with at most this probability.

    P(χ² ≥ D + 2√(Dx) + 2x) ≤ e^−x (Laurent & Massart 2000, lemma 1).
    """
    x = -log(chance)
    return sqrt(entries + 2 * sqrt(entries * x) + 2 * x)


# Cached for each mechanism: a collector counts every commit.
@lru_cache(maxsize=256)
def reach_of(mechanism: Mechanism) -> Reach:
    if isinstance(mechanism, GaussianStatistics):
        entries = len(mechanism.coordinates)
        # The norm of vvᵀ is |v|²; rounding adds less than 1 to each entry.
        square = mechanism.radius**2 + 2 * mechanism.weight**2
        norm = (mechanism.diagonal * square >> MULTIPLIER_BITS) + isqrt(entries) + 2
        return Reach(np.full(entries, mechanism.largest - NOISE_REACH), norm)
    record = cast(GaussianRecord, mechanism)
    features = np.full(len(record.features), record.radius)
    if record.binary:
        return Reach(features, record.radius + 1)
    norm = isqrt(record.radius**2 + record.response_grid**2) + 2
    return Reach(np.append(features, record.response_grid), norm)
