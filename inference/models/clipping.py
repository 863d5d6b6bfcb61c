"""Warnings about records for which a regression's intervals are narrow around wrong numbers.

No regression likelihood models clipping: it fits the line of the clipped records. Released moments reveal
clipping, on average over the records. The logistic models assume normal features, and give wrong coefficients
for features that cannot be normal.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from inference.default_priors import has_yes_no_response
from inference.models.base import Check, Draws, notes_of
from inference.results.verdict import listed
from inference.units import RecordUnits
from schemas import Question

# A normal law with more mass than this beyond the bounds cannot describe a feature within them.
BEYOND = 0.05
# The posterior probability, required for a remark, that more than BEYOND is outside.
SURE = 0.95


def beyond_bounds(question: Question, draws: Draws) -> tuple[str, ...]:
    """Return a remark on features whose mean and sd no normal law within the bounds can have.

    Too few reports give no remark.
    """
    mean, sd = draws["feature_mean"], draws["feature_sd"]
    names = features_where(question, np.quantile(share_beyond(mean, sd), 1 - SURE, axis=(0, 1)) > BEYOND)
    if not names:
        return ()
    return (
        f"the model assumes normal features, which {listed(names)} cannot be: such a mean and sd mean that "
        "answers crowd at a bound, as with a yes/no. Logistic coefficients are then too large, the large "
        "coefficients most: docs/models.md has figures",
    )


def share_beyond(mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mass of normal laws beyond −1…1."""
    return np.asarray(ndtr((-1 - mean) / sd) + ndtr((mean - 1) / sd))


def features_where(question: Question, odd: NDArray[np.bool_]) -> list[str]:
    """Return the names of the features marked in `odd`, (d,)."""
    return [name for name, is_odd in zip(RecordUnits(question).names, odd, strict=True) if is_odd]


Vector = NDArray[np.float64]

# The largest error attributed to noise, in its sds.
NOISE_SDS = 5.0
# Shares of a normal law beyond the bounds of a response and of a feature. A uniform feature has 8 %, so its
# limit is higher; clipping that share of responses biases slopes by as much.
RESPONSE_BEYOND, FEATURE_BEYOND = 0.05, 0.1
# A two-valued feature has its bounds as values, and a mean square of 1: none of it is clipped.
TWO_VALUES = 0.9


class ClippedMoments(NamedTuple):
    """Moments of clipped features and responses, in scaled units.

    mean, squares: averages (d + 1,) over `records` records. noise (d + 1,): sds of the squares' noise, inf
    for squares that were not released.
    """

    mean: Vector
    squares: Vector
    noise: Vector
    records: float

    @property
    def unsure(self) -> Vector:
        """Return how far the law's true mean squares may be from these, (d + 1,)."""
        return np.hypot(self.noise, np.abs(self.squares) * np.sqrt(2 / max(self.records, 1.0)))


def warnings(question: Question, moments: ClippedMoments | None) -> tuple[tuple[str, ...], tuple[Check, ...]]:
    """Return the notes and checks of a regression on normal features.

    moments: of the records. A logistic regression is checked by its posterior alone.
    """
    if has_yes_no_response(question) or moments is None:
        return (), (notes_of(partial(beyond_bounds, question)),)
    return clipping_notes(question, moments), ()


def cuts_records(question: Question, squares: Vector, noise: Vector) -> bool:
    """Return True if squared lengths average over half the squared norm, beyond noise: records were cut."""
    assert question.norm is not None
    limit = float(question.norm) ** 2
    return bool(limit < len(squares) and squares.sum() - NOISE_SDS * np.linalg.norm(noise) > limit / 2)


def clipping_notes(question: Question, moments: ClippedMoments) -> tuple[str, ...]:
    """Return notes on how clipping affects the coefficients, if it is certain despite the noise."""
    # 1. Normal laws with these means and the least variances that noise allows: their mass beyond −1…1.
    mean, squares = np.clip(moments.mean, -1, 1), moments.squares[:-1]
    least = moments.squares - NOISE_SDS * moments.unsure - mean**2
    sd = np.sqrt(np.maximum(least, 1e-12))
    beyond = np.where(least > 0, share_beyond(mean, sd), 0.0)
    crowded = features_where(question, (beyond[:-1] > FEATURE_BEYOND) & (squares < TWO_VALUES))
    # 2. The notes on features and on the response.
    notes: tuple[str, ...] = ()
    if question.norm is not None and cuts_records(question, squares, moments.unsure[:-1]):
        notes = (
            f"the norm {question.norm} cuts many records short: coefficients describe the shortened features "
            "and are mostly too large, and intervals do not reflect this. Ask again with a larger norm "
            "(docs/models.md has figures)",
        )
    elif crowded:
        notes = (
            f"a normal law with the mean and sd of {listed(crowded)} has much beyond the bounds: if values "
            "were clipped there, coefficients are too large, and intervals do not reflect this. Ask again "
            "with wider bounds",
        )
    if beyond[-1] > RESPONSE_BEYOND:
        notes += (
            f"a normal law with the response's mean and sd has {100 * beyond[-1]:.0f} % beyond its bounds: "
            "if responses were clipped there, all coefficients are too small, by a larger share than that, "
            "and intervals do not reflect this. Ask again with wider bounds (docs/models.md has figures; "
            "responses spread evenly between their bounds are no problem)",
        )
    return notes
