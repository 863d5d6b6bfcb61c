"""Whether records are such that a regression's intervals are narrow around wrong numbers.

No likelihood of a regression knows of clipping: its line is that of the clipped records. Released moments
show it, on average over the records; where noise hides it from them, a posterior still says how much it
leaves possible. The logistic models take features to be normal: of features that cannot be, their
coefficients are wrong too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from inference.models.base import Draws
from inference.results.diagnostics import listed
from inference.units import RecordUnits
from schemas import Question

# A normal law with more than this beyond the bounds is not that of a feature which lies within them.
BEYOND = 0.05
# The posterior probability that it is more.
SURE = 0.95


def beyond_bounds(question: Question, draws: Draws) -> tuple[str, ...]:
    """A remark on features whose mean and sd no normal law within the bounds has; none of too few reports."""
    mean, sd = draws["feature_mean"], draws["feature_sd"]
    names = features_where(question, np.quantile(share_beyond(mean, sd), 1 - SURE, axis=(0, 1)) > BEYOND)
    if not names:
        return ()
    return (
        f"the model takes features as normal, which {listed(names)} cannot be: such a mean and sd are of "
        "answers that crowd at a bound, as of a yes/no. Logistic coefficients then come out too large, and "
        "large ones most: docs/models.md has figures",
    )


def share_beyond(mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of normal laws lies beyond −1…1."""
    return np.asarray(ndtr((-1 - mean) / sd) + ndtr((mean - 1) / sd))


def features_where(question: Question, odd: NDArray[np.bool_]) -> list[str]:
    """The names of the features that are odd, (d,)."""
    return [name for name, is_odd in zip(RecordUnits(question).names, odd, strict=True) if is_odd]


Vector = NDArray[np.float64]

# What noise may feign, in its sds.
NOISE_SDS = 5.0
# Shares of a normal law beyond a response's and a feature's bounds: even ones have 8 %, so that a feature
# must have more; a response that is clipped there has its slopes wrong by as much.
RESPONSE_BEYOND, FEATURE_BEYOND = 0.05, 0.1
# A feature of two values has its bounds as values, and a mean square of 1: nothing of it is clipped.
TWO_VALUES = 0.9

# A probability that a reader need not hear of.
FEW_DRAWS = 0.05


class Moments(NamedTuple):
    """mean, squares (d + 1,): of the features and the response, in scaled units, over so many records.

    noise (d + 1,): sds of the squares' noise, inf of what was not released.
    """

    mean: Vector
    squares: Vector
    noise: Vector
    records: float

    @property
    def unsure(self) -> Vector:
        """How far the law's own mean squares may be from these, (d + 1,)."""
        return np.hypot(self.noise, np.abs(self.squares) * np.sqrt(2 / max(self.records, 1.0)))


def cuts_records(question: Question, squares: Vector, noise: Vector) -> bool:
    """Lengths of half the squared norm on average, beyond what noise may feign, are those of cut records."""
    assert question.norm is not None
    limit = float(question.norm) ** 2
    return bool(limit < len(squares) and squares.sum() - NOISE_SDS * np.linalg.norm(noise) > limit / 2)


def clipping_notes(question: Question, moments: Moments) -> tuple[str, ...]:
    """What clipping does to the coefficients, where noise leaves no doubt of it."""
    beyond = _beyond(moments)
    notes = _feature_notes(question, moments, beyond[:-1])
    if beyond[-1] > RESPONSE_BEYOND:
        notes += (
            f"a normal law with the response's mean and sd has {100 * beyond[-1]:.0f} % beyond its bounds: "
            "where responses were clipped there, all coefficients are too small, by a larger share than "
            "that, and intervals do not know it: ask again with wider bounds (docs/models.md has figures; "
            "responses spread evenly between their bounds are no fault)",
        )
    return notes


def possible_clipping(question: Question, draws: Draws) -> tuple[str, ...]:
    """What a posterior of noisy reports leaves possible: records that lie beyond their bounds or norm.

    draws: a linear regression's sites, in scaled units.
    """
    beyond = float(share_beyond(*_response_law(draws)).mean())
    squares = np.sum(draws["feature_mean"] ** 2 + draws["feature_sd"] ** 2, axis=-1)
    limit = np.inf if question.norm is None else float(question.norm) ** 2
    # A norm of √d cuts none.
    cut = float(np.mean(squares > limit / 2)) if limit < draws["feature_sd"].shape[-1] else 0.0
    if beyond <= RESPONSE_BEYOND and cut <= FEW_DRAWS:
        return ()
    of_norm = f", and, with probability {100 * cut:.0f} %, that many records exceed their norm"
    return (
        f"these reports leave possible that {100 * beyond:.0f} % of responses lie beyond their bounds"
        f"{'' if question.norm is None else of_norm}: devices clip those, the "
        "model does not know it, and sd and coefficients may be off by more than their intervals say: "
        "`ldpkit calibrate --device` shows by how much, and docs/models.md",
    )


def _response_law(draws: Draws) -> tuple[Vector, Vector]:
    """Mean and sd of the response over all records, each (chains, draws)."""
    if "second" in draws:
        mean, square = draws["second"][..., 0, -1], draws["second"][..., -1, -1]
        return mean, np.sqrt(np.maximum(square - mean**2, 1e-12))
    slopes, scale = draws["coefficients"], draws["feature_sd"]
    # The site is a factor of the correlation matrix, and there is none for one feature.
    factor = draws.get("feature_correlation", np.eye(scale.shape[-1]))
    along = np.einsum("...i,...ij->...j", slopes * scale, factor)
    mean = draws["intercept"] + np.sum(slopes * draws["feature_mean"], axis=-1)
    return mean, np.sqrt(np.sum(along**2, axis=-1) + draws["sd"] ** 2)


def _feature_notes(question: Question, moments: Moments, beyond: Vector) -> tuple[str, ...]:
    squares = moments.squares[:-1]
    if question.norm is not None and cuts_records(question, squares, moments.unsure[:-1]):
        return (
            f"the norm {question.norm} cuts many records short: coefficients are those of shorter features, "
            "mostly too large, and intervals do not know it: ask again with a larger norm (docs/models.md "
            "has figures)",
        )
    crowded = (beyond > FEATURE_BEYOND) & (squares < TWO_VALUES)
    names = features_where(question, crowded)
    if not names:
        return ()
    return (
        f"a normal law with the mean and sd of {listed(names)} has much beyond the bounds: where values "
        "were clipped there, coefficients are too large, and intervals do not know it: ask again with wider "
        "bounds",
    )


def _beyond(moments: Moments) -> Vector:
    """Shares beyond −1…1 of normal laws with these means and the least variances that noise allows."""
    mean = np.clip(moments.mean, -1, 1)
    least = moments.squares - NOISE_SDS * moments.unsure - mean**2
    sd = np.sqrt(np.maximum(least, 1e-12))
    return np.where(least > 0, share_beyond(mean, sd), 0.0)
