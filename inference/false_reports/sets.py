"""Bound shares of choices and means if a share of the reports was arbitrary: their identified sets.

Let h(report) be a number whose mean over honest reports is the quantity, whatever people answer. A share f
of the reports is arbitrary, so the mean over all reports is (1 − f) quantity + f g, where g is between the
least and the largest h of any possible report, its extreme points. Nothing else is known of g, so the
quantity's bounds are the bounds of (mean − f g)/(1 − f). They need no assumption on the answers, and no
prior.

A share of a choice has h = (1 − q)/(p − q) for a report that supports the choice and −q/(p − q) for another.
The false report that moves a share most supports that choice alone, or all others (the maximal gain attack
of Cao, Jia & Gong 2021). For two people with different answers, any such numbers differ by at least
1/(p − q), so no other number gives narrower bounds. False reports may move the posterior itself further,
because it uses more of the information in honest reports.

A mean under Laplace noise of scale s counts a report between the bounds unchanged, and a report beyond a
bound as s outside it. The mean of these is exactly the answers' mean: E h(x + noise) = x for every x between
the bounds. Under Gaussian noise no bounded function has this property. There, far reports are drawn in, and
the resulting largest bias is added. Both hold whatever law the answers have, for the answers as clipped to
the bounds.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from inference.likelihoods.numbers.noise import noise_channel
from inference.models.choice_forms import column_gain, supports_of, unbiased_shares
from inference.models.number import ANSWERS, cell_edges, cell_middles
from inference.results.identified import MOST_FALSE, Bounds, IdentifiedSets
from inference.results.intervals import REFUSED
from inference.units import number_units
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question
from summaries import QuestionSummary

Vector = NDArray[np.float64]
Parameters = Mapping[str, Vector]

# Slightly above 90 %: an attacker who knows all honest reports can only exploit their random error.
TAILS = (0.04, 0.96)
NINETY = 1.7506860712521692
# For Gaussian noise: how far beyond the bounds reports count unchanged, in sds, and stretching factors.
REACHES = np.linspace(0.0, 6.0, 31)
STRETCHES = np.linspace(1.0, 2.0, 21)

UNBOUNDED = "bounds exist only for shares of choices, and for a mean under the model `nonparametric`"
OF_A_SUM = "single shares of a secure sum are hidden: a false share can move the total at will"
NOT_BOUNDED = "the effect of false reports on the other quantities is not bounded"
TOO_MANY_HERE = "false reports could be half of those on this question, and say anything"


class Functional(NamedTuple):
    """One quantity or several: entries (k,).

    low, high: the 90 % interval of the mean of h over all reports. least, largest: of h over possible
    reports. bias: the largest difference between the mean of h over honest reports and the quantity.
    """

    low: Vector
    high: Vector
    least: Vector
    largest: Vector
    bias: float = 0.0

    def bounds(self, share: float) -> tuple[Vector, Vector]:
        """Return the ends of each quantity's 90 % set, if at most this share of reports was false.

        Each end is monotone in the share, so its extreme is at a share of 0 or at the whole share.
        """
        low = np.minimum(self.low, (self.low - share * self.largest) / (1 - share)) - self.bias
        high = np.maximum(self.high, (self.high - share * self.least) / (1 - share)) + self.bias
        return low, high


def identified_sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    share: float,
    part: float | None,
    parameters: Parameters,
) -> IdentifiedSets | None:
    """Return the sets of shares of choices and of a mean; None if the share is zero, or no report arrived.

    share: of all reports. part: the share of all devices that answer the question, or None for all; all false
    reports may then answer this question. parameters: draws in own units.
    """
    if not share or not summary.n:
        return None
    here = None if part is None else share / part
    if here is not None and here >= MOST_FALSE:
        return IdentifiedSets(share, open=TOO_MANY_HERE, here=here)
    if question.protocol is not None:
        return IdentifiedSets(share, open=OF_A_SUM, here=here)
    false = share if here is None else here
    if isinstance(mechanism, ChoiceMechanism):
        bounds, what = _shares(question, mechanism, summary, false)
        least, most = 0.0, 1.0
    elif isinstance(mechanism, NumberMechanism) and question.model.name == "nonparametric":
        zero, unit = number_units(question)
        low, high = mean_bounds(mechanism, summary, false)
        least, most = zero, zero + unit
        bounds = {"mean": (zero + unit * low, zero + unit * high)}
        what = {"mean": "the mean of the answers, as clipped to the bounds,"}
    else:
        return IdentifiedSets(share, open=UNBOUNDED, here=here)
    # A set includes the posterior's interval.
    sets = {}
    for name in [name for name in bounds if name in parameters]:
        low, high = np.quantile(parameters[name], TAILS)
        ends = np.clip([min(bounds[name][0], low), max(bounds[name][1], high)], least, most)
        sets[name] = Bounds(float(ends[0]), float(ends[1]))
    return IdentifiedSets(share, sets, what, "" if len(sets) == len(parameters) else NOT_BOUNDED, here)


def _shares(
    question: Question, mechanism: ChoiceMechanism, summary: QuestionSummary, share: float
) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
    """Return {parameter: bounds} of a question's shares, and descriptions; none for unlike supports."""
    functional = shares_of_reports(mechanism, summary)
    if functional is None:
        return {}, {}
    low, high = functional.bounds(share)
    names = ["", "p"] if question.ask == "yes_no" else [f"p[{label}]" for label in question.choices]
    labels = [f"the share of {label}" for label in question.choices]
    if question.refusal:
        # The other shares are among those who answer. The last share is of refusals.
        least, most = (1 - np.clip(end[-1], 0, 0.99) for end in (high, low))
        low = np.append(np.clip(low[:-1], 0, 1) / most, low[-1])
        high = np.append(high[:-1] / least, high[-1])
        names = [*names, REFUSED]
        labels = [*(f"{label} among those who answer" for label in labels), "the share of refusals"]
    named = {name: place for place, name in enumerate(names) if name}
    return (
        {name: (float(low[place]), float(high[place])) for name, place in named.items()},
        {name: labels[place] for name, place in named.items()},
    )


def shares_of_reports(mechanism: ChoiceMechanism, summary: QuestionSummary) -> Functional | None:
    """Return the shares (k,) from the reports alone; None if the mechanism has another law of supports."""
    n = summary.n
    if isinstance(mechanism, Hadamard):
        # The mean of 1, −1, or 0 (another block), divided by the gain.
        gain, mean = column_gain(mechanism), unbiased_shares(mechanism, summary)
        columns = summary.values.reshape(mechanism.blocks, mechanism.width) / max(n, 1)
        in_block = np.repeat(columns.sum(axis=1), mechanism.width - 1)[: mechanism.choices]
        error = np.sqrt(np.maximum(in_block / gain**2 - mean**2, 0.0) / max(n, 1))
        most = np.full(mechanism.choices, 1 / gain)
        return Functional(mean - NINETY * error, mean + NINETY * error, -most, most)
    if type(mechanism).support_probability is not ChoiceMechanism.support_probability:
        return None
    p, q = float(mechanism.p), float(mechanism.q)
    counts = supports_of(mechanism, summary)
    ends = [betaincinv(counts + 0.5, n - counts + 0.5, tail) for tail in TAILS]
    least, largest = np.full(len(counts), -q / (p - q)), np.full(len(counts), (1 - q) / (p - q))
    return Functional((ends[0] - q) / (p - q), (ends[1] - q) / (p - q), least, largest)


def mean_bounds(mechanism: Mechanism, summary: QuestionSummary, share: float) -> tuple[float, float]:
    """Return the narrowest 90 % bounds of the mean over bounded functions of a report, bounds at 0 and 1."""
    edges, scale = cell_edges(mechanism)
    channel, answers = noise_channel(mechanism.name, ANSWERS, edges, scale), ANSWERS
    middles, counts, n = cell_middles(edges, scale), summary.values, max(summary.values.sum(), 1)
    functions = [middles]
    if mechanism.name != "laplace":
        drawn_in = [np.clip(middles, -reach * scale, 1 + reach * scale) - 0.5 for reach in REACHES]
        functions = [0.5 + stretch * values for values in drawn_in for stretch in STRETCHES]

    def averaged(values: Vector) -> Functional:
        mean = float(counts @ values) / n
        error = float(np.sqrt(np.maximum(counts @ values**2 / n - mean**2, 0.0) / n))
        low, high = np.asarray([mean - NINETY * error]), np.asarray([mean + NINETY * error])
        bias = float(np.abs(channel @ values - answers).max())
        return Functional(low, high, values.min(keepdims=True), values.max(keepdims=True), bias)

    def width(functional: Functional) -> float:
        spread = 2 * functional.bias + float((functional.high - functional.low)[0])
        return spread + share * float((functional.largest - functional.least)[0])

    (low,), (high,) = min(map(averaged, functions), key=width).bounds(share)
    return float(low), float(high)
