"""Lower bounds on ε: events are chosen on one half of the reports, and tested on the other.

A view gives each report a label below 2**16. An event is a set of labels. Of the views of a family, the best
event is tested. Some families find faults that show only in joint distributions: two bits, or a
number with the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.randomness import urandom
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldpkit.auditing.answers import words_of
from ldpkit.auditing.exact import Claim, GaussianClaim, is_numeric, lower_share, upper_share

Labels = NDArray[np.int64]

# With more bits than this, pairs are built around the bits that differ most between two answers.
ALL_PAIRS_UP_TO = 48
FOCUS = 6
# Cells of numbers along the line between two answers.
CELLS = 16
LOWEST_BITS = (1 << 8) - 1
MOST_WORDS = 8
# Events are chosen by bounds of this many standard errors; the test itself uses bounds that always hold.
CAUTION = 5.0
TIE_BREAK = exp(-20)


class Sample:
    """Reports of one answer: as payloads, bytes, bits (lowest of byte 0 first) and integers."""

    def __init__(self, mechanism: Mechanism, payloads: list[bytes]) -> None:
        self.payloads = payloads
        self.count = len(payloads)
        size = mechanism.payload_size
        self.bytes = np.frombuffer(b"".join(payloads), np.uint8).reshape(self.count, size).astype(np.int64)
        self.bits = np.unpackbits(self.bytes.astype(np.uint8), axis=1, bitorder="little").T.astype(np.int64)
        self.words = np.array([mechanism.words(payload) for payload in payloads], np.int64)

    @classmethod
    def halves(cls, mechanism: Mechanism, answer: Any, count: int) -> tuple[Sample, Sample]:
        """Draw independent reports of one answer: one half to choose events, and one to test them."""
        quantised = mechanism.quantise(answer)
        payloads = [mechanism.randomise(quantised, urandom) for _ in range(count)]
        return cls(mechanism, payloads[: count // 2]), cls(mechanism, payloads[count // 2 :])


@dataclass(frozen=True)
class View:
    """A labelling of reports."""

    name: str
    labels: Callable[[Sample], Labels]


@dataclass(frozen=True)
class Evidence:
    """The evidence of one event about a claim, on reports that did not choose the event.

    family: the event's kind. epsilon: the evidence in nats. refutes: whether it breaks the claim. Both hold
    except with a given probability.
    """

    family: str
    epsilon: float
    refutes: bool
    detail: str


def evidence_of(
    mechanism: Mechanism,
    answers: dict[str, Any],
    samples: dict[str, tuple[Sample, Sample]],
    false_alarm: float,
) -> list[Evidence]:
    """Return the evidence of each family's best event for two answers.

    Args:
        mechanism: the mechanism that drew the reports.
        answers: two answers by name; events are likelier under the first.
        samples: the reports of each, in halves.
        false_alarm: each result is wrong with at most this probability.
    """
    (name, other_name), evidence = answers, []
    (learn, test), (learn_other, test_other) = samples[name], samples[other_name]
    for family, claim, views in _families(mechanism, list(answers.values()), learn, learn_other):
        scored = [_best_event(view, claim, learn, learn_other) for view in views]
        _, view, event = max(scored, key=lambda scores: scores[0])
        seen = [int(np.isin(view.labels(sample), event).sum()) for sample in (test, test_other)]
        low = lower_share(seen[0], test.count, false_alarm / 2)
        high = upper_share(seen[1], test_other.count, false_alarm / 2)
        value = claim.evidence(low, high)
        epsilon = claim.as_epsilon(value)
        counts = f"{view.name}: {seen[0]} and {seen[1]} of {test.count}, {name} against {other_name}"
        detail = f"epsilon ≥ {epsilon:.4g} ({counts})"
        evidence.append(Evidence(family, epsilon, value > claim.limit, detail))
    return evidence


def _families(
    mechanism: Mechanism, answers: list[Any], first: Sample, second: Sample
) -> Iterator[tuple[str, Claim, list[View]]]:
    """Yield all families for two answers: name, the claim that their events test, and views.

    Families that adapt to data use these samples only.
    """
    claim = Claim(mechanism.privacy)
    yield "pairs of bits", claim, _bit_pairs(first, second)
    size = mechanism.payload_size
    if size <= 2:
        place_values = 256 ** np.arange(size)
        yield "whole payloads", claim, [View("payload", lambda s: s.bytes @ place_values)]
    if isinstance(mechanism, ChoiceMechanism):
        yield "supported choices", claim, [support_view(mechanism, answers)]
    if is_numeric(mechanism):
        shift = [a - b for a, b in zip(*[words_of(mechanism, answer) for answer in answers])]
        # Project integers on the line between the answers, into CELLS cells, equally full over both samples.
        line = np.array(shift, float)
        along = np.concatenate([first.words, second.words]) @ line
        edges = np.quantile(along, np.arange(1, CELLS) / CELLS)

        def cells(sample: Sample) -> Labels:
            places: Labels = np.searchsorted(edges, sample.words @ line)
            return places

        if size % 4:
            joint = View("threshold with the last byte", lambda s: 256 * cells(s) + s.bytes[:, -1])
            yield "numbers with the last byte", claim, [joint]
        else:
            exact = GaussianClaim(mechanism.privacy) if claim.delta else claim
            yield "numbers", exact, [View("threshold", cells)]
        far = sorted(range(len(shift)), key=lambda index: -abs(shift[index]))[:MOST_WORDS]
        yield "lowest bits", claim, [_lowest_bits(index) for index in far]


def _bit_pairs(first: Sample, second: Sample) -> list[View]:
    """Return views of two bits."""

    def view(high: int, low: int) -> View:
        return View(f"bits {high} and {low}", lambda s: 2 * s.bits[high] + s.bits[low])

    count = len(first.bits)
    if count <= ALL_PAIRS_UP_TO:
        return [view(high, low) for high, low in combinations(range(count), 2)]
    gaps = np.abs(first.bits.sum(axis=1) - second.bits.sum(axis=1))
    focus = np.argsort(gaps)[-FOCUS:].tolist()
    return [view(high, low) for high in focus for low in range(count) if high != low]


def support_view(mechanism: Any, answers: list[Any]) -> View:
    """Return a view of which of the two answers are in the report's set of supported choices."""
    first, second = [mechanism.quantise(answer) for answer in answers]

    def labels(sample: Sample) -> Labels:
        supported = mechanism.supported
        return np.array([2 * supported(each, first) + supported(each, second) for each in sample.payloads])

    return View("support of the two answers", labels)


def _lowest_bits(index: int) -> View:
    """Return a view of an integer's residues, which shows coarser noise."""
    return View(f"number {index} mod {LOWEST_BITS + 1}", lambda s: s.words[:, index] & LOWEST_BITS)


def _best_event(view: View, claim: Claim, first: Sample, second: Sample) -> tuple[float, View, Labels]:
    """Return the score, the view, and the labels most likely under the first answer that score best."""
    labels = [view.labels(sample) for sample in (first, second)]
    size = 1 + max(int(label.max()) for label in labels)
    here, there = (np.bincount(label, minlength=size) for label in labels)
    present = np.flatnonzero(here)
    order = present[np.argsort(-(here[present] + 0.5) / (there[present] + 0.5), kind="stable")]
    best, cut = -1.0, 0
    shares = zip(np.cumsum(here[order]) / first.count, np.cumsum(there[order]) / second.count)
    for count, (p, q) in enumerate(shares, 1):
        low, high = _wilson(p, first.count, -CAUTION), _wilson(q, second.count, CAUTION)
        score = claim.evidence(low, high) + TIE_BREAK * (p - q)
        if score > best:
            best, cut = score, count
    return best, view, order[:cut]


def _wilson(share: float, n: int, z: float) -> float:
    """Return Wilson's score bound: from above for z > 0, from below for z < 0."""
    middle = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return min(max((middle + spread) / (1 + z * z / n), 0.0), 1.0)
