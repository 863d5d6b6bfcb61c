"""What noise does to the reports of 100 people: a sentence in whole numbers, and the data of its picture.

Frequencies help people understand epsilon (Nanayakkara et al. 2023, "What are the chances?", USENIX
Security).
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.pages.words import Language, words_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.words.text import plain

if TYPE_CHECKING:
    from ldp_client.documents.question import Question
    from ldp_client.mechanisms import Mechanism

MOST = 90
# Half the width of the middle 90 % of reports, by the noise's law, in units of its scale.
HALF_WIDTH = {"laplace": log(100 / (100 - MOST)), "gaussian": 1.6448536269514722}


class Hundred(NamedTuple):
    """The sentence, and what its picture shows.

    truthful: the number of reports that tell the truth. start: where the range of most reports begins for an
    answer mid-way between the bounds, in parts of their distance; it ends as far from the other bound.
    """

    sentence: str
    truthful: int = 0
    start: float = 0.0


def hundred_of(
    question: Question, mechanism: Mechanism, words: Language | None = None, one_of: int = 1
) -> Hundred | None:
    """Describe a hundred reports. Returns None for mechanisms that no such sentence fits.

    Args:
        question: what is asked.
        mechanism: its mechanism.
        words: the language, by default English.
        one_of: how many questions there are, if each device draws one of them at random.

    Returns:
        The sentence, and the facts of its picture: dots, or a band for a number's noise.
    """
    words = words or words_of("en")
    hundred = _of_reports_on_it(question, mechanism, words)
    if hundred is None or one_of == 1:
        return hundred
    drawn = words.gettext(
        "Chance draws one question for each report: about {drawn} of 100 reports are on this one, and what "
        "follows is of these alone."
    )
    drawn = words.filled(drawn, {"drawn": _of_100(1 / one_of)})
    return hundred._replace(sentence=f"{drawn} {hundred.sentence}")


def _of_reports_on_it(question: Question, mechanism: Mechanism, words: Language) -> Hundred | None:
    if isinstance(mechanism, RefusableNumber):
        refused = words.gettext(
            "Of 100 people who prefer not to say, about {told} reports tell that; of 100 who say a number, "
            "about {rest} do."
        )
        number = _number(mechanism.number, words)
        return number._replace(sentence=f"{number.sentence} {_told(refused, mechanism, words).sentence}")
    if mechanism.name in HALF_WIDTH:
        return _number(mechanism, words)
    if isinstance(mechanism, ChoiceMechanism):
        return _choice(question, mechanism, words)
    if not isinstance(mechanism, SampledProducts):
        return None
    if mechanism.signs == 1:
        sentence = words.gettext(
            "A report says one bit about a part of this, drawn by chance. Of 100 such bits, about {told} are "
            "true and {rest} are the opposite."
        )
    else:
        sentence = words.gettext(
            "A report says {signs} bits together, about parts of this that are drawn by chance. Of 100 such "
            "reports, about {told} are true in all of them, and {rest} are not."
        )
    return _told(sentence, mechanism, words, signs=mechanism.signs)


def _told(sentence: str, mechanism: Any, words: Language, **facts: Any) -> Hundred:
    told = _of_100(mechanism.p)
    filled = words.filled(sentence, {"told": told, "rest": 100 - told, **facts})
    return Hundred(filled, told)


def _choice(question: Question, mechanism: Any, words: Language) -> Hundred:
    if "randomized_response" not in (mechanism.name, getattr(mechanism, "of", "")):
        return _among(mechanism, words)
    if question.ask == "yes_no" and not question.refusal:
        sentence = words.gettext(
            "Of 100 reports of people who answer yes, about {told} say yes and {rest} say no. Of 100 of "
            "people who answer no, about {told} say no and {rest} say yes."
        )
    else:
        sentence = words.gettext(
            "Of 100 reports of people who give the same answer, about {told} say it, and {rest} say another "
            "one, by chance."
        )
    return _told(sentence, mechanism, words)


def _among(mechanism: ChoiceMechanism, words: Language) -> Hundred:
    """Describe true and other choices; "hadamard" has different odds for another choice of the same block.

    The first block is the fullest: if any choices share a block, the first two do, and if any do not, the
    first and the last do not.
    """
    others = {_of_100(mechanism.support_probability(0, other)) for other in (1, mechanism.choices - 1)}
    if len(others) == 1:
        sentence = words.gettext(
            "Of 100 reports of people who give the same answer, about {told} have it among what they say; so "
            "have about {other} of 100 reports of people who give another one."
        )
        return _told(sentence, mechanism, words, other=others.pop())
    sentence = words.gettext(
        "Of 100 reports of people who give the same answer, about {told} have it among what they say; so "
        "have, depending on the other one, about {least} to {most} of 100 reports of people who give another "
        "one."
    )
    return _told(sentence, mechanism, words, least=min(others), most=max(others))


def _of_100(share: Any) -> int:
    """Round a share to a whole number from 1 to 99, so that it never reads as none or all."""
    return min(99, max(1, round(100 * float(share))))


def _number(mechanism: Any, words: Language) -> Hundred:
    low, high = map(float, mechanism.bounds)
    half = HALF_WIDTH[mechanism.name] * mechanism.scale / mechanism.levels
    sentence = words.gettext(
        "Of 100 reports of people who give the same answer, about {most} lie within {width} of it, above or "
        "below; the others lie further off."
    )
    facts = {"most": MOST, "width": words.number(plain(half * (high - low)))}
    return Hundred(words.filled(sentence, facts), start=max(0.0, 0.5 - half))
