"""What each quantity of a fit may be if a share of the reports was false."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inference.false_reports.choices import share_sets
from inference.false_reports.functionals import TAILS
from inference.false_reports.influence import law_sets
from inference.false_reports.numbers import moment_sets
from inference.models.base import Draws, Model
from inference.results.identified import IdentifiedSets, all_on_one
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.mechanisms.refusable import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary
from summaries.influence import product_influence

Parameters = Mapping[str, NDArray[np.float64]]

UNBOUNDED = "one false report can say so much that no share of them leaves a bound"
OF_A_SUM = "nobody sees what one share of a secure sum says: a false one can move the total at will"
OF_REFUSABLE = "no set is computed of numbers that may be refused"
OF_PRODUCTS = (
    "no set is computed of what follows from products; an average product of scaled fields, between −1 and "
    "1, could be moved by up to {:.3g}"
)
NOT_BOUNDED = "nothing bounds what false reports could do to the others"


def identified_sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    share: float,
    part: float | None,
    model: Model,
    parameters: Parameters,
    sites: Draws,
) -> IdentifiedSets | None:
    """The set of every parameter that has one; None where the share is zero, or nothing came.

    part: as of `all_on_one`. parameters: draws in own units; sites: the same draws of the model's sites.
    """
    if not share or not summary.n:
        return None

    def of_these(own: float) -> IdentifiedSets:
        return _sets(question, mechanism, summary, own, model, parameters, sites)

    return all_on_one(share, part, of_these)


def _sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    share: float,
    model: Model,
    parameters: Parameters,
    sites: Draws,
) -> IdentifiedSets:
    """Of a share of the reports on the question."""
    if question.route is not None:
        return IdentifiedSets(share, open=OF_A_SUM)
    intervals = {name: interval_of(draws) for name, draws in parameters.items()}
    if isinstance(mechanism, ChoiceMechanism):
        sets, what = share_sets(question, mechanism, summary, intervals, share)
    elif isinstance(mechanism, NumberMechanism) and question.model.name == "free":
        sets, what = moment_sets(question, mechanism, summary, intervals, share)
    elif isinstance(mechanism, NumberMechanism):
        sets = law_sets(model, sites, share)
        what = {name: f"the {name} of the law" for name in sets}
    elif isinstance(mechanism, RefusableNumber):
        return IdentifiedSets(share, open=OF_REFUSABLE)
    elif isinstance(mechanism, SampledProducts):
        moved = min(2.0, product_influence(mechanism, share))
        return IdentifiedSets(share, open=OF_PRODUCTS.format(moved))
    else:
        return IdentifiedSets(share, open=UNBOUNDED)
    return IdentifiedSets(share, sets, what, "" if len(sets) == len(parameters) else NOT_BOUNDED)


def interval_of(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The 90 % interval of draws."""
    low, high = np.quantile(draws, TAILS)
    return float(low), float(high)
