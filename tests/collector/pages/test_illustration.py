"""The participant's page shows 100 people in agreement with the mechanisms' exact laws."""

import re

import pytest

from collector.pages.illustration import HALF_WIDTH, Dots, hundred_of
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.ldp_client.exact_laws import READS, law_of
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


def test_record_question_has_no_sentence_about_100_people():
    assert said(studies.RECORD)[0] is None


ENUMERATED = [
    *[(name, 3) for name in ("oue", "sue")],
    *[(name, k) for name in ("randomized_response", "subset_selection") for k in (2, 6)],
    *[("hadamard", k) for k in (2, 3, 4, 6, 20)],
]


def built(choices, **mechanism):
    asked = {**studies.CHOICE, "choices": {"count": choices}, "mechanism": mechanism}
    (question,) = Study(studies.document(asked)).questions
    return question, mechanism_for(question)


def rates(question, mechanism):
    """What the sentence says of the truth, and the least and the most of another choice."""
    sentence = hundred_of(question, mechanism).sentence
    told, *others = map(int, re.findall(r"(?:about|to) (\d+)", sentence))
    if "among" not in sentence:
        k = mechanism.choices
        assert f"{100 - told} say another" in sentence
        others = [(100 - told) / (k - 1)]
    return told, others[0], others[-1]


def shares(k, supports):
    """The truth's and others' least and most hundredths, of a law's P(S has `index` | `true`)."""
    truths = [100 * supports(true, true) for true in range(k)]
    others = [100 * supports(true, index) for true in range(k) for index in range(k) if index != true]
    return min(truths), max(truths), min(others), max(others)


@pytest.mark.attack(2)
@pytest.mark.parametrize("epsilon", ["1", "3", "7"])
@pytest.mark.parametrize(("name", "k"), ENUMERATED)
def test_sentence_matches_exact_law_of_reports(name, k, epsilon):
    """Show people a wrong rate of equal reports by others before they decide: the page states it."""
    question, m = built(k, name=name, epsilon=epsilon)
    laws = [law_of(m, index, READS[name](m)) for index in range(k)]
    has = [{payload for law in laws for payload in law if m.supported(payload, i)} for i in range(k)]
    law = shares(k, lambda true, index: float(sum(laws[true].get(one, 0) for one in has[index])))
    told, least, most = rates(question, m)
    # Never all or none.
    exact = [min(max(share, 1), 99) for share in law]
    room = 0.5 if name != "randomized_response" else 1
    for number, share in zip((told, told, least, most), exact):
        assert abs(number - share) <= room + 1e-9


def test_page_states_reports_per_randomly_drawn_question(empty):
    asked = [{**studies.YES_NO, "id": f"q{place}"} for place in range(5)]
    document = studies.document(*asked, sample_one_question=True)
    assert empty.publish(document).status_code == 201
    page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
    assert page.count("what follows is of these alone. Of 100 reports of people who answer yes") == 5
