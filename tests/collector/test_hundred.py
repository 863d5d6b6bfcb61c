"""The participant's page shows 100 people in agreement with the mechanisms' exact laws."""

import re

import pytest

from collector.views.illustration import HALF_WIDTH, Dots, hundred_of
from ldp_client import mechanism_for
from ldp_client.words.text import plain
from schemas import Study
from tests import studies
from tests.statistics import seeded

SEVERAL = {
    **studies.PRODUCTS,
    "mechanism": {"name": "sampled_products", "epsilon": "4", "products": 3},
}


def said(question):
    (asked,) = Study(studies.document(question)).questions
    return hundred_of(asked, mechanism_for(asked)), mechanism_for(asked)


@pytest.mark.parametrize(
    "question", [studies.YES_NO, studies.CHOICE, studies.ONE_OF, studies.PRODUCTS, SEVERAL, studies.MEMOIZED]
)
def test_dots_and_sentences_show_the_mechanisms_probability(question):
    hundred, mechanism = said(question)
    told = round(100 * float(mechanism.p))
    assert hundred.dots == Dots(told // 5, told % 5)
    assert f"about {told} " in hundred.sentence
    assert ("3 bits" in hundred.sentence) == (question is SEVERAL)


def test_nearly_certain_answer_is_not_shown_as_certain():
    hundred, mechanism = said(studies.with_epsilon(studies.YES_NO, "8"))
    assert float(mechanism.p) > 0.999
    assert "about 99 say yes and 1 say no" in hundred.sentence


@pytest.mark.parametrize("name", HALF_WIDTH)
def test_the_band_holds_90_of_100_reports_of_the_exact_law(name):
    mechanism = {"name": name, "epsilon": "2", **({"delta": "1e-6"} if name == "gaussian" else {})}
    hundred, built = said({**studies.NUMBER, "mechanism": mechanism})
    (width,) = re.findall(r"within ([\d.]+) of it", hundred.sentence)
    low, high = map(float, built.bounds)
    half = float(width) / (high - low)
    answer, source = (low + high) / 2, seeded(name)
    reports = [int.from_bytes(built.perturb(answer, source), "big", signed=True) for _ in range(4000)]
    middle = built.levels / 2
    share = sum(abs(report - middle) <= half * built.levels for report in reports) / len(reports)
    # 7 standard deviations.
    assert abs(share - 0.9) < 7 * (0.09 / 4000) ** 0.5
    assert hundred.band.start == pytest.approx(max(0, 0.5 - half), abs=0.01)


@pytest.mark.parametrize(
    ("number", "words"), [(20000.4, "20,000"), (0.012345, "0.0123"), (5.0, "5"), (1234567, "1,230,000")]
)
def test_numbers_are_written_without_exponents(number, words):
    assert plain(number) == words


def test_record_question_has_no_sentence_about_100_people():
    assert said(studies.RECORD)[0] is None
