"""The participant's page shows 100 people in agreement with the mechanisms' exact laws."""

import itertools
import re

import pytest

from collector.pages.illustration import HALF_WIDTH, Dots, hundred_of
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.statistics import seeded


def built(asked):
    """A question's sentence about a hundred reports with its picture, and its mechanism."""
    (question,) = Study(studies.document(asked)).questions
    mechanism = mechanism_for(question)
    return hundred_of(question, mechanism), mechanism


PRODUCTS = {**studies.PRODUCTS, "mechanism": {"name": "sampled_products", "epsilon": "4", "products": 3}}
# Never all or none.
CERTAIN = studies.with_epsilon(studies.YES_NO, "8")


@pytest.mark.parametrize(
    "question", [studies.YES_NO, studies.PRODUCTS, PRODUCTS, studies.MEMOIZED, CERTAIN], ids=str
)
def test_dots_and_sentences_show_the_mechanisms_probability(question):
    hundred, mechanism = built(question)
    told = min(99, round(100 * float(mechanism.p)))
    assert hundred.dots == Dots(told // 5, told % 5)
    assert f"about {told} " in hundred.sentence
    assert built(studies.RECORD)[0] is None


@pytest.mark.parametrize("name", HALF_WIDTH)
def test_the_band_holds_90_of_100_reports_of_the_exact_law(name):
    stated = {"name": name, "epsilon": "2", **({"delta": "1e-6"} if name == "gaussian" else {})}
    hundred, mechanism = built({**studies.NUMBER, "mechanism": stated})
    (width,) = re.findall(r"within ([\d.]+) of it", hundred.sentence)
    low, high = map(float, mechanism.bounds)
    half, source = float(width) / (high - low), seeded(name)
    reports = [mechanism.perturb((low + high) / 2, source) for _ in range(4000)]
    off = [abs(int.from_bytes(report, "big", signed=True) / mechanism.levels - 0.5) for report in reports]
    # 7 standard deviations.
    assert abs(sum(each <= half for each in off) / 4000 - 0.9) < 7 * (0.09 / 4000) ** 0.5
    assert hundred.band.start == pytest.approx(max(0, 0.5 - half), abs=0.01)


@pytest.mark.attack(2)
@pytest.mark.parametrize("epsilon", ["1", "3", "7"])
@pytest.mark.parametrize("name", ["oue", "randomized_response", "subset_selection", "hadamard"])
@pytest.mark.parametrize("k", [2, 3, 4, 6, 20])
def test_sentence_states_how_often_others_have_the_answer(name, k, epsilon):
    """Show people a wrong rate of equal reports by others before they decide: the page states it."""
    mechanism = {"name": name, "epsilon": epsilon}
    hundred, m = built({**studies.CHOICE, "choices": {"count": k}, "mechanism": mechanism})
    told, *others = map(int, re.findall(r"(?:about|to) (\d+)", hundred.sentence))
    if "among" not in hundred.sentence:
        assert f"{100 - told} say another" in hundred.sentence
        others = [(100 - told) / (k - 1)]
    pairs = itertools.permutations(range(k), 2)
    shares = [100 * float(m.support_probability(true, index)) for true, index in pairs]
    # Never all or none.
    exact = [min(max(share, 1), 99) for share in (100 * float(m.p), min(shares), max(shares))]
    room = 0.5 if name != "randomized_response" else 1
    assert (told, others[0], others[-1]) == pytest.approx(exact, abs=room + 1e-9)


def test_page_states_reports_per_randomly_drawn_question(empty):
    asked = [{**studies.YES_NO, "id": f"q{place}"} for place in range(5)]
    document = studies.document(*asked, sample_one_question=True)
    assert empty.publish(document).status_code == 201
    page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
    assert page.count("what follows is of these alone. Of 100 reports of people who answer yes") == 5
