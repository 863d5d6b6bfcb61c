"""How far false reports can move an estimate: the most that one report can add, in units of the estimate.

The mechanism checks rule out impossible reports only; an attacker may choose any possible report. With a
share f of such reports, an estimate moves by at most f times the factors given here.
"""

from __future__ import annotations

from math import erf, expm1, sqrt

from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.mechanisms.tables import TableMechanism

# The share of false reports in pages and commands.
FALSE_SHARE = 0.01


def share_influence(mechanism: ChoiceMechanism) -> float:
    """Return the most that a share f of false reports moves a choice's estimated share, over f: 1/(p − q).

    The estimate is (support/n − q)/(p − q), and a report adds 0 or 1 to a choice's support.
    """
    return 1 / float(mechanism.p - mechanism.q)


def mean_influence(mechanism: Mechanism) -> float:
    """Return the most that a share f of false reports moves an estimated mean, over f and the bounds' span.

    Summaries count reports beyond the grid at its end. The average of such clipped reports moves by f at
    most, and follows the answers with a slope of at least the probability that noise on an answer at one
    bound falls between the bounds: (1 − e^−ε)/2 for Laplace noise, Φ(levels/scale) − 1/2 for Gaussian.
    """
    width = mechanism.levels / mechanism.scale  # type: ignore[attr-defined]
    inside = -expm1(-width) if mechanism.name == "laplace" else erf(width / sqrt(2))
    return 2 / inside


def influence_in_words(mechanism: Mechanism, false_share: float, part: float = 1.0) -> str:
    """Return a sentence on how far a share of false reports could move one question's share or mean.

    part: the share of all reports that answer it. If each device answers one question, it may choose which.
    """
    senders = f"If {100 * false_share:g} % of the reports were false"
    if part < 1:
        senders += ", all of them on this question"
    false_share = min(1.0, false_share / part)
    if isinstance(mechanism, ChoiceMechanism):
        moved = min(1.0, false_share * share_influence(mechanism))
        return (
            f"{senders}, the share of a choice could be moved by up to {100 * moved:.3g} percentage points."
        )
    if isinstance(mechanism, NumberMechanism):
        moved = min(1.0, false_share * mean_influence(mechanism))
        return f"{senders}, the mean could be moved by up to {100 * moved:.3g} % of the range."
    if isinstance(mechanism, TableMechanism):
        return (
            f"{senders}, estimates could be moved at will: a holder's report weighs as much as the number of "
            "records that it states. Take reports of invited holders only."
        )
    return f"{senders}, estimates could be moved; a bound is computed for shares and means only."
