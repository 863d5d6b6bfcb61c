"""Shares of choices if some reports were false: exact, from how often reports support each choice.

The number of a report is (1 − q)/(p − q) for a choice that it supports and −q/(p − q) for another. The
false report that moves a share most supports that choice alone, or all others (the maximal gain attack of
Cao, Jia & Gong 2021). For two people with different answers, any such numbers differ by at least 1/(p − q),
so no other number gives narrower bounds. False reports may move the posterior itself further, because it
uses more of the information in honest reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from inference.false_reports.functionals import NINETY, TAILS, Functional, around
from inference.models.choice_forms import column_gain, supports_of, unbiased_shares
from inference.results.identified import Bounds
from inference.results.intervals import REFUSED
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from schemas import Question
from summaries import QuestionSummary

Counts = NDArray[np.float64]
SHARE = (0.0, 1.0)


def share_sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    intervals: Mapping[str, tuple[float, float]],
    share: float,
) -> tuple[dict[str, Bounds], dict[str, str]]:
    """Return the set of each share of a question's choices, and its description; none for unlike supports."""
    found = shares_of_reports(cast(ChoiceMechanism, mechanism), summary)
    if found is None:
        return {}, {}
    low, high = found.bounds(share)
    if question.refusal:
        low, high = _among_answers(low, high)
    places = _parameters(question)
    kept = {name: place for name, place in places.items() if name in intervals}
    sets = {name: around(low[place], high[place], intervals[name], SHARE) for name, place in kept.items()}
    labels = [f"the share of {label}" for label in question.choices]
    if question.refusal:
        labels = [*[f"{label} among those who answer" for label in labels], "the share of refusals"]
    return sets, {name: labels[place] for name, place in kept.items()}


def _among_answers(low: Counts, high: Counts) -> tuple[Counts, Counts]:
    """Return bounds of shares among people who answer. Arguments: shares of all people, last the refusals."""
    least, most = (1 - np.clip(end[-1], 0, 0.99) for end in (high, low))
    return np.append(np.clip(low[:-1], 0, 1) / most, low[-1]), np.append(high[:-1] / least, high[-1])


def _parameters(question: Question) -> dict[str, int]:
    """Return {parameter: index of its choice}."""
    names = ["", "p"] if question.ask == "yes_no" else [f"p[{label}]" for label in question.choices]
    places = {name: place for place, name in enumerate(names) if name}
    return {**places, REFUSED: len(names)} if question.refusal else places


def shares_of_reports(mechanism: ChoiceMechanism, summary: QuestionSummary) -> Functional | None:
    """Return the shares (k,) from the reports alone; None if the mechanism has another law of supports."""
    if isinstance(mechanism, Hadamard):
        return _of_columns(mechanism, summary)
    if type(mechanism).support_probability is not ChoiceMechanism.support_probability:
        return None
    p, q, n = float(mechanism.p), float(mechanism.q), summary.n
    counts = supports_of(mechanism, summary)
    ends = [betaincinv(counts + 0.5, n - counts + 0.5, tail) for tail in TAILS]
    least, largest = np.full(len(counts), -q / (p - q)), np.full(len(counts), (1 - q) / (p - q))
    return Functional((ends[0] - q) / (p - q), (ends[1] - q) / (p - q), least, largest)


def _of_columns(mechanism: Hadamard, summary: QuestionSummary) -> Functional:
    """Return shares under Hadamard response: the mean of 1, −1, or 0 (another block), divided by the gain."""
    gain, mean = column_gain(mechanism), unbiased_shares(mechanism, summary)
    columns = summary.values.reshape(mechanism.blocks, mechanism.width) / max(summary.n, 1)
    in_block = np.repeat(columns.sum(axis=1), mechanism.width - 1)[: mechanism.choices]
    error = np.sqrt(np.maximum(in_block / gain**2 - mean**2, 0.0) / max(summary.n, 1))
    most = np.full(mechanism.choices, 1 / gain)
    return Functional(mean - NINETY * error, mean + NINETY * error, -most, most)
