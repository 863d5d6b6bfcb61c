"""What noise does to the reports of 100 people: a sentence in whole numbers, and the data of its picture.

Frequencies help people understand epsilon (Nanayakkara et al. 2023, "What are the chances?", USENIX
Security).
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.pages.words import ENGLISH
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.refusable import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.words.text import Words, plain

if TYPE_CHECKING:
    from ldp_client.documents.question import Question
    from ldp_client.mechanisms import Mechanism

MOST = 90
# Half the width of the middle 90 % of reports, by the noise's law, in units of its scale.
HALF_WIDTH = {"laplace": log(100 / (100 - MOST)), "gaussian": 1.6448536269514722}
COLUMNS, ROWS = 20, 5


class Dots(NamedTuple):
    """A number of dots out of 100: full columns, and the dots of the next column."""

    columns: int
    rest: int


class Band(NamedTuple):
    """The range of most reports for an answer mid-way between the bounds, in parts of their distance."""

    start: float
    width: float


class Hundred(NamedTuple):
    """The sentence, and its picture: dots or a band."""

    sentence: str
    dots: Dots | None = None
    band: Band | None = None


def hundred_of(
    question: Question, mechanism: Mechanism, words: Words = ENGLISH, one_of: int = 1
) -> Hundred | None:
    """Describe a hundred reports. Returns None for mechanisms that no such sentence fits.

    Args:
        question: what is asked.
        mechanism: its mechanism.
        words: the language.
        one_of: how many questions there are, if each device draws one of them at random.

    Returns:
        The sentence, with dots for the reports that tell the truth, or a band for a number's noise.
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
    """Describe true and other choices; "hadamard" has different odds for another choice of the same block.

    The first block is the fullest: if any choices share a block, the first two do, and if any do not, the
    first and the last do not.
    """
    others = {_of_100(mechanism.support_probability(0, other)) for other in (1, mechanism.choices - 1)}
    if len(others) == 1:
        return _told("hundred.among", mechanism, words, other=others.pop())
    return _told("hundred.among.unlike", mechanism, words, least=min(others), most=max(others))


def _of_100(share: Any) -> int:
    """Round a share to a whole number from 1 to 99, so that it never reads as none or all."""
    return min(99, max(1, round(100 * float(share))))


def _number(mechanism: Any, words: Words) -> Hundred:
    low, high = map(float, mechanism.bounds)
    half = HALF_WIDTH[mechanism.name] * mechanism.scale / mechanism.levels
    start = max(0.0, 0.5 - half)
    sentence = words.say("hundred.number", most=MOST, width=words.number(plain(half * (high - low))))
    return Hundred(sentence, band=Band(start, 1 - 2 * start))
