"""What noise does to the reports of 100 people: a sentence in whole numbers, and what its picture shows.

Frequencies are what people take epsilon in by (Nanayakkara et al. 2023, "What are the chances?", USENIX
Security).
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.languages import ENGLISH
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.refusable import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.words.text import Words, plain

if TYPE_CHECKING:
    from ldp_client.documents.study import Question
    from ldp_client.mechanisms import Mechanism

MOST = 90
# Half the width of the middle 90 % of reports, by the noise's law, in its own scale.
HALF_WIDTH = {"laplace": log(100 / (100 - MOST)), "gaussian": 1.6448536269514722}
COLUMNS, ROWS = 20, 5


class Dots(NamedTuple):
    """So many of 100 dots: whole columns, and the dots of the next one."""

    columns: int
    rest: int


class Band(NamedTuple):
    """Where most reports of an answer in the middle of the bounds lie, in parts of their distance."""

    start: float
    width: float


class Hundred(NamedTuple):
    """The sentence and its picture, of one kind or the other."""

    sentence: str
    dots: Dots | None = None
    band: Band | None = None


def hundred_of(
    question: Question, mechanism: Mechanism, words: Words = ENGLISH, one_of: int = 1
) -> Hundred | None:
    """Say what a hundred reports would be. None of mechanisms that no such sentence fits.

    Args:
        question: what is asked.
        mechanism: its mechanism.
        words: the language.
        one_of: from how many questions chance draws the one that a report is on.

    Returns:
        The sentence, with dots for the reports that tell the truth, or a band for noise of a number.
    """
    found = _of_reports_on_it(question, mechanism, words)
    if found is None or one_of == 1:
        return found
    drawn = words.say("hundred.drawn", drawn=_of_100(1 / one_of))
    return found._replace(sentence=f"{drawn} {found.sentence}")


def _of_reports_on_it(question: Question, mechanism: Mechanism, words: Words) -> Hundred | None:
    if isinstance(mechanism, RefusableNumber):
        told = _of_100(mechanism.p)
        refused = words.say("hundred.refusal", told=told, rest=100 - told)
        found = _number(mechanism.number, words)
        return found._replace(sentence=f"{found.sentence} {refused}")
    if mechanism.name in HALF_WIDTH:
        return _number(mechanism, words)
    if isinstance(mechanism, ChoiceMechanism):
        return _choice(question, mechanism, words)
    if not isinstance(mechanism, SampledProducts):
        return None
    key = "hundred.sign" if mechanism.signs == 1 else "hundred.signs"
    return _told(key, mechanism, words, signs=mechanism.signs)


def _told(key: str, mechanism: Any, words: Words, **facts: Any) -> Hundred:
    told = _of_100(mechanism.p)
    return Hundred(words.say(key, told=told, rest=100 - told, **facts), Dots(*divmod(told, ROWS)))


def _choice(question: Question, mechanism: Any, words: Words) -> Hundred:
    if "randomized_response" not in (mechanism.name, getattr(mechanism, "of", "")):
        return _among(mechanism, words)
    key = "hundred.yes_no" if question.ask == "yes_no" and not question.refusal else "hundred.choice"
    return _told(key, mechanism, words)


def _among(mechanism: ChoiceMechanism, words: Words) -> Hundred:
    """Of the truth and of another choice; "hadamard" has its own odds for one of the same block.

    The first block is the fullest: if any choices share one, the first two do, and if any do not, the first
    and the last.
    """
    others = {_of_100(mechanism.support_probability(0, other)) for other in (1, mechanism.choices - 1)}
    if len(others) == 1:
        return _told("hundred.among", mechanism, words, other=others.pop())
    return _told("hundred.among.unlike", mechanism, words, least=min(others), most=max(others))


def _of_100(share: Any) -> int:
    """Never all or none, where it is not so."""
    return min(99, max(1, round(100 * float(share))))


def _number(mechanism: Any, words: Words) -> Hundred:
    low, high = map(float, mechanism.bounds)
    half = HALF_WIDTH[mechanism.name] * mechanism.scale / mechanism.levels
    start = max(0.0, 0.5 - half)
    sentence = words.say("hundred.number", most=MOST, width=words.number(plain(half * (high - low))))
    return Hundred(sentence, band=Band(start, 1 - 2 * start))
