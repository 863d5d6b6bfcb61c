"""Show people a wrong rate of equal reports by others, under some mechanism or ε, before they decide.

Defence: The page: states the exact rate of each mechanism, a range if other choices differ, and the rate of
reports on that question if it is drawn at random.
"""

import re

import pytest

from collector.languages import ENGLISH
from collector.views.illustration import hundred_of
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.collector.conftest import TOKEN
from tests.ldp_client.exact_laws import READS, law_of
from tests.statistics import seeded

SAMPLES = 2000
# Seven standard deviations of a share of so many reports, in hundredths.
CLOSE = 8
MEMOIZED = {"name": "memoized", "instantaneous_epsilon": "1"}
ENUMERATED = [
    *[(name, 3) for name in ("oue", "sue")],
    *[(name, k) for name in ("randomized_response", "subset_selection") for k in (2, 6)],
    *[("hadamard", k) for k in (2, 3, 4, 6, 20)],
]


def built(choices, **mechanism):
    asked = {**studies.CHOICE, "choices": {"count": choices}, "mechanism": mechanism}
    (question,) = Study(studies.document(asked)).questions
    return question, mechanism_for(question)


def said(question, mechanism):
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


@pytest.mark.parametrize("epsilon", ["1", "3", "7"])
@pytest.mark.parametrize(("name", "k"), ENUMERATED)
def test_sentence_matches_exact_law_of_reports(name, k, epsilon):
    question, m = built(k, name=name, epsilon=epsilon)
    laws = [law_of(m, index, READS[name](m)) for index in range(k)]
    has = [{payload for law in laws for payload in law if m.supported(payload, i)} for i in range(k)]
    law = shares(k, lambda true, index: float(sum(laws[true].get(one, 0) for one in has[index])))
    told, least, most = said(question, m)
    # Never all or none.
    exact = [min(max(share, 1), 99) for share in law]
    room = 0.5 if name != "randomized_response" else 1
    for number, share in zip((told, told, least, most), exact):
        assert abs(number - share) <= room + 1e-9


@pytest.mark.parametrize(
    ("k", "mechanism"),
    [(k, {"name": "olh", "epsilon": epsilon}) for k in (3, 20) for epsilon in ("1", "3", "8")]
    + [
        (4, {**MEMOIZED, "of": of, "epsilon": epsilon})
        for of in ("randomized_response", "sue")
        for epsilon in "26"
    ],
)
def test_sentence_matches_sampled_reports(k, mechanism):
    question, m = built(k, **mechanism)
    told, least, most = said(question, m)
    source = seeded(k, mechanism)
    reports = [m.perturb(0, source) for _ in range(SAMPLES)]
    for index, number in ((0, told), (1, least), (k - 1, most)):
        assert abs(100 * sum(m.supported(one, index) for one in reports) / SAMPLES - number) <= CLOSE


def test_page_states_reports_per_randomly_drawn_question(empty):
    asked = [{**studies.YES_NO, "id": f"q{place}"} for place in range(5)]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    document = studies.document(*asked, sample_one_question=True)
    assert empty.client.post("/v1/studies", json=document, headers=headers).status_code == 201
    page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
    assert (
        page.count(ENGLISH.say("hundred.drawn", drawn=20) + " Of 100 reports of people who answer yes") == 5
    )
