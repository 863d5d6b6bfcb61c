"""What a mechanism does to an answer, in a sentence.

Its key is "mechanism." and the mechanism's name, and its facts are the mechanism's own attributes: a new
mechanism needs a line in each language's file, and something here only for facts that are no attribute.
"""

from math import exp

from ldp_client.core.quantise import UNIT
from ldp_client.documents.rational import Rational
from ldp_client.words.text import ENGLISH, Words, rounded_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable

    from ldp_client.mechanisms import Mechanism

    Facts = Callable[[Any, Words], dict[str, Any]]


def in_words(mechanism: "Mechanism", words: Words = ENGLISH) -> str:
    """Say what the mechanism does to an answer.

    Args:
        mechanism: one question's.
        words: the language.

    Returns:
        One or more sentences, with the mechanism's probabilities and the size of its noise.

    Raises:
        KeyError: the language has no sentence of this mechanism.
    """
    if mechanism.name.startswith("table_"):
        return " ".join(_table_sentences(mechanism, words))
    facts = _known(mechanism, words)
    kind = facts.get("kind", "")
    return words.say_of(f"mechanism.{mechanism.name}{kind}", facts)


class _Known(dict):  # type: ignore[type-arg]
    """Facts, and behind them a mechanism's attributes; exact numbers become floats, which have digits."""

    def __init__(self, mechanism: "Mechanism", facts: "Mapping[str, Any]") -> None:
        super().__init__(facts)
        self._mechanism = mechanism

    def __missing__(self, name: str) -> "Any":
        value = getattr(self._mechanism, name)
        return float(value) if isinstance(value, Rational) else value


def _known(mechanism: "Mechanism", words: Words) -> _Known:
    facts = FACTS.get(mechanism.name)
    return _Known(mechanism, facts(mechanism, words) if facts else {})


def _number(mechanism: "Any", _: Words) -> "dict[str, Any]":
    low, high = mechanism.bounds
    return {"size": (float(high) - float(low)) * mechanism.scale / mechanism.levels}


def _subset(mechanism: "Any", _: Words) -> "dict[str, Any]":
    return {"count": mechanism.size}


def _hadamard(mechanism: "Any", _: Words) -> "dict[str, Any]":
    return {"sharing": 2 * mechanism.blocks}


def _products(mechanism: "Any", _: Words) -> "dict[str, Any]":
    return {"norm": mechanism.radius / UNIT, "products": len(mechanism.coordinates)}


def _record(mechanism: "Any", _: Words) -> "dict[str, Any]":
    return {"norm": mechanism.radius / mechanism.grid, "kind": ".yes_no" if mechanism.binary else ".number"}


def _memoized(mechanism: "Any", words: Words) -> "dict[str, Any]":
    first = mechanism.first
    facts = {"choices": first.choices, "kept_p": float(first.p), "kept_q": float(first.q)}
    kept = words.say_of(f"mechanism.memoized.{mechanism.of}", facts)
    return {"kept": kept, "growth": rounded_up(exp(float(mechanism.report_privacy.epsilon)), 3)}


def _summed(mechanism: "Any", words: Words) -> "dict[str, Any]":
    facts = {"size": mechanism.size}
    if mechanism.statistic == "record":
        facts["norm"] = mechanism.radius / UNIT
    if mechanism.statistic == "marginals":
        facts["fields"] = len(mechanism.fields)
    return {"what": words.say_of(f"mechanism.summed_gaussian.{mechanism.statistic}", facts)}


# What a sentence says beside the mechanism's attributes, by the mechanism's name.
FACTS: "dict[str, Facts]" = {
    "laplace": _number,
    "gaussian": _number,
    "subset_selection": _subset,
    "hadamard": _hadamard,
    "gaussian_statistics": _products,
    "gaussian_record": _record,
    "memoized": _memoized,
    "summed_gaussian": _summed,
}


def _table_sentences(mechanism: "Any", words: Words) -> "list[str]":
    """The clipping, the grouping, the sums and their noise."""
    said = [words.say("table.clipping", norm=mechanism.radius / UNIT)]
    if mechanism.average > 1:
        said += [words.say("table.groups", average=mechanism.average)]
    sums = {"products": len(mechanism.coordinates), "noise": _range(mechanism.noise_scale, words)}
    said += [words.say_of(f"table.sums.{mechanism.law}", sums)]
    if mechanism.products:
        powers = "table.powers.three_and_four" if mechanism.intercept else "table.powers.four"
        noise = _range(mechanism.power_noise_scale, words)
        said += [words.say(powers, powers=len(mechanism.products), power_noise=noise)]
    sd = mechanism.count_noise_sd
    said += [words.say("table.count.noisy" if sd else "table.count.public", count_noise_sd=sd)]
    return said


def _range(numbers: "list[float]", words: Words) -> str:
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else words.say("range", low=low, high=high)
