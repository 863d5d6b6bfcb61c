"""What payloads really tell, for tests of promises: odds of enumerated payloads, distances without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import mpmath

from ldp_client.core.randomness import NotForRealAnswers
from tests.ldp_client.exact_laws import (
    RECORDS,
    Read,
    coin,
    law_of,
    laws_of,
    products_law,
    uniform,
    worst_ratio,
)

UNIT = 1 << 20


def log_of(ratio: Fraction) -> Any:
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


def gaussian_epsilon(distance: Any, delta: str) -> Any:
    """The ε of normal noise of sd 1 and that distance at δ (Balle and Wang 2018, theorem 8), by bisection."""
    low, high = mpmath.mpf(0), mpmath.mpf(40)
    for _ in range(80):
        middle = (low + high) / 2
        unlikely = mpmath.ncdf(-distance / 2 - middle / distance)
        exact = mpmath.ncdf(distance / 2 - middle / distance) - mpmath.exp(middle) * unlikely
        low, high = (middle, high) if exact > mpmath.mpf(delta) else (low, middle)
    return low


def answers_of(asked: Mapping[str, Any]) -> list[Any]:
    """The answers that lie furthest from one another: at, beyond and between bounds, in all combinations."""
    if asked["ask"] == "number":
        return [-1e300, 1e300, *map(float, asked["bounds"]), *([None] if "refusal" in asked else [])]
    fields = [*asked["features"], asked["response"]]
    values = [
        ("no", "yes") if "bounds" not in field else (*map(float, field["bounds"]), middle_of(field))
        for field in fields
    ]
    return [dict(zip([field["id"] for field in fields], each)) for each in product(*values)]


def middle_of(field: Mapping[str, Any]) -> float:
    return sum(map(float, field["bounds"])) / 2


def distance_of(m: Any, answers: Sequence[Any]) -> Any:
    """The greatest distance of two payloads without noise, in the noise's scale. Zeros give no noise."""
    words = [m.words(m.perturb(answer, NotForRealAnswers(bytes))) for answer in answers]
    squares = [sum((a - b) ** 2 for a, b in zip(one, other)) for one, other in combinations(words, 2)]
    return mpmath.sqrt(max(squares)) / UNIT


def coin_of(m: Any, first: Any, second: Any) -> Any:
    """The log odds of the byte behind the noise, whatever stands before it."""
    reads: list[Read] = [[(bytes(12 * (m.payload_size // 4)), Fraction(1))], coin(m.threshold), uniform(1)]
    laws = []
    for answer in (first, second):
        drawn = law_of(m, m.quantise(answer), reads)
        laws.append({payload[-1:]: chance for payload, chance in drawn.items()})
    return log_of(worst_ratio(laws))


def true_epsilon(asked: Mapping[str, Any], m: Any) -> Any:
    """What the payloads of a mechanism really tell."""
    if m.name == "memoized":
        return log_of(worst_ratio(laws_of(m.first)))
    if m.name == "sampled_products":
        return log_of(worst_ratio([products_law(m, m.quantise(record)) for record in RECORDS]))
    if asked["ask"] in ("choice", "yes_no"):
        return log_of(worst_ratio(laws_of(m)))
    answers, delta = answers_of(asked), asked["mechanism"].get("delta")
    if "refusal" in asked:
        low, high = map(float, asked["bounds"])
        half = max(distance_of(m, [None, bound]) for bound in (low, high))
        return max(distance_of(m, [low, high]), half + coin_of(m, None, (low + high) / 2))
    if delta is None:
        return distance_of(m, answers)
    epsilon = gaussian_epsilon(distance_of(m, answers), delta)
    if m.name == "gaussian_record" and asked["response"].get("ask") == "yes_no":
        yes = next(answer for answer in answers if answer["affair"] == "yes")
        epsilon += coin_of(m, yes, {**yes, "affair": "no"})
    return epsilon


def exact(value: Any) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator
