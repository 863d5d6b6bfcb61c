"""Every mechanism's law equals the stated law, and the same bytes give the same payload on every platform.

Laws of choices are enumerated in exact fractions, at the words just below and at each threshold. Laws of
numbers are counted in 200,000 seeded draws, which show a scale that is 3 % off.
"""

import copy
import io
import struct
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_client import mechanism_for
from ldp_client.core import strips
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.strips import DRAW_BYTES
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import base
from ldp_client.mechanisms.choice import RandomizedResponse
from tests import studies
from tests.ldp_client.exact_laws import CHOICES, WHOLE, faults, laws_of, worst_ratio
from tests.portable.vectors import differences, load
from tests.statistics import follows, seeded

DRAWS = 200_000
UNIT = 1 << 20
EDGES = np.floor(np.linspace(-4, 4, 17) * UNIT) + 0.5


def of_choice(name, count):
    """A question with so many numbered choices."""
    return studies.question_of(
        studies.CHOICE, choices={"count": count}, mechanism={"name": name, "epsilon": "1"}
    )


def check_choice(m):
    """Enumerate the law of a choice; test_memoized.py and test_sampled_products.py enumerate other laws."""
    laws = laws_of(m)
    assert faults(m, laws) == set()
    assert worst_ratio(laws) == Fraction(*m.odds)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.usefixtures("few_hashes")
def test_the_law_of_a_choice_holds(name, count):
    check_choice(mechanism_for(of_choice(name, count)))


class GenerousCoin(RandomizedResponse):
    """The truth is told one time in 2**32 more often than stated."""

    def randomise(self, quantised, random):
        generous = copy.copy(self)
        generous.threshold += 1
        return RandomizedResponse.randomise(generous, quantised, random)


def test_a_planted_coin_is_found():
    with pytest.raises(AssertionError):
        check_choice(GenerousCoin(of_choice("randomized_response", 5)))


YES, NO = {**studies.ANSWERS["risk"], "affair": True}, studies.ANSWERS["risk"]
# (question, answer whose last byte is 0, answer whose last byte is 1, numbers that take noise before it)
LAST_BYTES = {
    "refusal of a number": ({**studies.NUMBER, "refusal": {"share": "0.25"}}, 3.5, None, 1),
    "yes or no of a record": (studies.YES_NO_RECORD, NO, YES, 2),
}


@pytest.mark.parametrize("name", LAST_BYTES)
def test_the_coin_of_a_last_byte_turns_at_its_threshold(name):
    asked, *answers, numbers = LAST_BYTES[name]
    m = studies.mechanism_of(asked)
    assert (m.odds, m.p) == ((m.threshold, WHOLE - m.threshold), Rational(m.threshold, WHOLE))
    lasts = []
    for answer in answers:
        for word in (m.threshold - 1, m.threshold):
            # Zeros give no noise. The last word is for the other value, of which there is only one.
            stream = io.BytesIO(bytes(DRAW_BYTES * numbers) + word.to_bytes(4, "big") + bytes(4))
            lasts.append(m.perturb(answer, NotForRealAnswers(stream.read))[-1])
            assert not stream.read()
    assert lasts == [0, 1, 1, 0]


NUMBERS = {"laplace": stats.laplace.cdf, "normal": stats.norm.cdf}


def number_follows(name):
    """Whether 200,000 draws of a number's noise have the stated law; bulk noise is the same numbers."""
    source = seeded(name)
    noise = np.concatenate([getattr(strips, name)(1000, source) for _ in range(DRAWS // 1000)])
    counts = np.bincount(np.searchsorted(EDGES, noise), minlength=len(EDGES) + 1)
    return follows(counts, np.diff(np.concatenate([[0.0], NUMBERS[name](EDGES / UNIT), [1.0]])))


@pytest.mark.parametrize("name", NUMBERS)
def test_the_law_of_a_number_holds_and_a_planted_scale_of_097_is_found(name, monkeypatch):
    assert number_follows(name)
    draw = getattr(strips, name)
    monkeypatch.setattr(strips, name, lambda *given: np.asarray(draw(*given)) * 97 // 100)
    assert not number_follows(name)


NOISY = {
    "number with Laplace noise": (studies.NUMBER, 3.5, "i"),
    "number with normal noise": (studies.NORMAL, 30, "i"),
    "statistics": (studies.LINEAR, studies.ANSWERS["rating"], "i"),
    "statistics of a yes or no": (studies.LOGISTIC, studies.ANSWERS["risk"], "i"),
    "record": (studies.RECORD, studies.ANSWERS["rating"], "i"),
    "record with a yes or no": (studies.YES_NO_RECORD, studies.ANSWERS["risk"], "i"),
    "table": (studies.TABLE, studies.ROWS, "q"),
    "table of DDPLR": (studies.DDPLR_TABLE, studies.ROWS, "q"),
    "table with Laplace noise": (studies.LAPLACE_TABLE, studies.ROWS, "q"),
}


@pytest.mark.parametrize("name", NOISY)
def test_the_noise_of_a_record_or_table_holds(name):
    """A record's words have a draw of their own each: those that the same bytes give of the number's law."""
    asked, answer, kind = NOISY[name]
    m, law = studies.mechanism_of(asked), strips.laplace if "Laplace" in name else strips.normal
    # Zeros give no noise.
    payloads = [m.perturb(answer, source) for source in (NotForRealAnswers(bytes), seeded(name))]
    count = len(payloads[0]) // struct.calcsize(kind)
    still, noisy = (struct.unpack_from(f">{count}{kind}", payload) for payload in payloads)
    # A table's count is public.
    noise = [word - bare for word, bare in zip(noisy, still)][kind == "q" :]
    assert noise == law(len(noise), seeded(name))


def test_a_planted_byte_order_is_found_by_the_vectors(monkeypatch):
    """tests/portable/test_vectors.py runs all vectors, and tests/mutants plants faults in JavaScript."""
    pack, vectors = base.pack_signed, load("gaussian")
    assert differences(vectors) == []
    monkeypatch.setattr("ldp_client.mechanisms.number.pack_signed", lambda values: pack(values)[::-1])
    assert differences(vectors)
