"""The enumerated laws of choices, at the words just below and at each threshold, for tests of promises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from ldp_client.mechanisms import olh
from schemas import Study
from tests import studies
from tests.ldp_client import exact_laws
from tests.ldp_client.exact_laws import WHOLE, Law, Read, law_of

CHOICES = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")
# The hash functions below this prime are few enough to try all of them.
PRIME = 5


def question(asked: Mapping[str, Any]) -> Any:
    return Study(studies.document(dict(asked))).questions[0]


def of_choice(name: str, count: int, epsilon: str = "1") -> Any:
    """A question with so many numbered choices."""
    mechanism = {"name": name, "epsilon": epsilon}
    return question({**studies.CHOICE, "choices": {"count": count}, "mechanism": mechanism})


def coin(threshold: int) -> Read:
    """The largest word below the threshold, and the threshold itself: a coin turns exactly between them."""
    below = Fraction(threshold, WHOLE)
    return [((threshold - 1).to_bytes(4, "big"), below), (threshold.to_bytes(4, "big"), 1 - below)]


def bits(m: Any) -> Read:
    """32 strings of bits, which spell the fractions just below and at the threshold, complemented."""
    chances, reads = coin(m.threshold), []
    for ones in product((1, 0), repeat=m.choices):
        numbers = [m.threshold - bit for bit in ones]
        digits = [
            sum((1 - (number >> place & 1)) << j for j, number in enumerate(numbers)) for place in range(32)
        ]
        reads.append((bytes(digits), math.prod(chances[1 - bit][1] for bit in ones)))
    return reads


def reads_of(m: Any) -> list[Read]:
    """What one payload reads: a memoized choice reads as the mechanism does that it repeats, twice."""
    if m.name == "memoized":
        again = SimpleNamespace(name=m.of, threshold=m.again, choices=m.choices)
        return [*reads_of(m.first), *reads_of(again)]
    if m.name == "oue":
        fair = [(bytes([byte]), Fraction(1, 1 << m.choices)) for byte in range(1 << m.choices)]
        return [exact_laws.joined(bits(m), fair)]
    return exact_laws.READS[m.name](m, PRIME) if m.name == "olh" else exact_laws.READS[m.name](m)


def laws_of(m: Any) -> list[Law]:
    """{payload: probability} for each choice. Needs `edges`."""
    reads = reads_of(m)
    return [law_of(m, index, reads) for index in range(m.choices)]


@pytest.fixture
def edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few hash functions, and words at thresholds."""
    monkeypatch.setattr(olh, "PRIME", PRIME)
    monkeypatch.setattr(exact_laws, "coin", coin)
    monkeypatch.setattr(exact_laws, "biased", bits)
