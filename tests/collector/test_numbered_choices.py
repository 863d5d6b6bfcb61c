"""A choice among very many numbers: nothing lists them all to a person."""

import json

import pytest

from ldp_client import mechanism_for
from ldp_client.explain import describe
from schemas import Report
from summaries import summarize
from tests.collector.conftest import build_study

COUNT = 1_000_000


def study_of(name):
    question = {
        "id": "word",
        "ask": "choice",
        "choices": {"count": COUNT},
        "mechanism": {"name": name, "epsilon": "2"},
        "model": {"name": "multinomial"},
    }
    return build_study(questions=[question])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["olh", "hadamard", "randomized_response"])
def test_pages_and_words_do_not_list_a_million_choices(empty, name):
    study = study_of(name)
    assert empty.publish(study).status_code == 201
    page = empty.client.get("/s/habits").text
    assert len(page) < 20_000
    assert "a whole number from 0 to 999,999" in page
    overview = empty.client.get("/", auth=("any", empty.operator["Authorization"].split()[1])).text
    assert "One of 1000000 choices." in overview
    assert len("\n".join(describe(study))) < 2000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["olh", "hadamard", "randomized_response"])
def test_reports_are_small_and_counted(empty, name):
    study = study_of(name)
    empty.publish(study)
    mechanism = mechanism_for(study.questions[0])
    payloads = [{"word": mechanism.perturb(answer)} for answer in (0, 999_999)]
    reports = [Report(f"{n:032x}", "habits", 1, study.digest, one) for n, one in enumerate(payloads)]
    assert max(len(report.to_json()) for report in reports) < 250
    for report in reports:
        assert empty.put(report).status_code == 201
    part = json.loads(empty.summary().text)["questions"]["word"]
    assert part["n"] == 2
    assert part["values"] == summarize(study, reports).questions["word"].values.tolist()
