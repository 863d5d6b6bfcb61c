"""Bound shares and means if a share of the reports was false."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inference.false_reports.choices import share_sets
from inference.false_reports.functionals import TAILS
from inference.false_reports.numbers import mean_sets
from inference.results.identified import IdentifiedSets, all_on_one
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question
from summaries import QuestionSummary

Parameters = Mapping[str, NDArray[np.float64]]

UNBOUNDED = "bounds exist only for shares of choices, and for a mean under the model `nonparametric`"
OF_A_SUM = "single shares of a secure sum are hidden: a false share can move the total at will"
NOT_BOUNDED = "the effect of false reports on the other quantities is not bounded"


def identified_sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    share: float,
    part: float | None,
    parameters: Parameters,
) -> IdentifiedSets | None:
    """Return the sets of shares of choices and of a mean; None if the share is zero, or no report arrived.

    part: as for `all_on_one`. parameters: draws in own units.
    """
    if not share or not summary.n:
        return None
    return all_on_one(share, part, lambda own: _sets(question, mechanism, summary, own, parameters))


def _sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    share: float,
    parameters: Parameters,
) -> IdentifiedSets:
    """Return the sets for a share of the reports on the question."""
    if question.protocol is not None:
        return IdentifiedSets(share, open=OF_A_SUM)
    intervals = {name: interval_of(draws) for name, draws in parameters.items()}
    if isinstance(mechanism, ChoiceMechanism):
        sets, what = share_sets(question, mechanism, summary, intervals, share)
    elif isinstance(mechanism, NumberMechanism) and question.model.name == "nonparametric":
        sets, what = mean_sets(question, mechanism, summary, intervals, share)
    else:
        return IdentifiedSets(share, open=UNBOUNDED)
    return IdentifiedSets(share, sets, what, "" if len(sets) == len(parameters) else NOT_BOUNDED)


def interval_of(draws: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 90 % interval of draws."""
    low, high = np.quantile(draws, TAILS)
    return float(low), float(high)
