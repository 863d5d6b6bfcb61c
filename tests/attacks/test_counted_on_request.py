"""Occupy a collector with a read key, by asking for summaries that are counted when somebody asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from collector.reports import running_summary
from collector.reports.rules import Tally
from ldp_client.answering import perturb_answers
from ldp_client.mechanisms import mechanisms_of
from tests.collector.answered import problem
from tests.collector.conftest import build_study

AREAS = 4000
STUDY = build_study(
    questions=[{**build_study().document["questions"][2], "id": f"q{n}"} for n in range(3)],
    public=[{"id": "area", "bounds": ["1", str(AREAS)], "step": "1"}],
)


@pytest.fixture
def cells(empty):
    empty.publish(STUDY)
    mechanisms = mechanisms_of(STUDY)
    answers = {question.id: "yes" for question in STUDY.questions}
    for area in (1, 1, 2):
        assert empty.put(perturb_answers(STUDY, mechanisms, {**answers, "area": area})).status_code == 201
    return empty


def test_one_is_counted_at_a_time_and_others_come_back(cells, monkeypatch):
    started, ended = Event(), Event()
    genuine = Tally.count

    def slow(tally, payloads):
        started.set()
        assert ended.wait(30)
        return genuine(tally, payloads)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
        patched.setattr(Tally, "count", slow)
        first = pool.submit(cells.app.test_client().get, "/v1/studies/habits/summary", headers=cells.operator)
        try:
            assert started.wait(30)
            second = cells.summary()
        finally:
            ended.set()
        assert first.result(30).status_code == 200
    assert problem(second) == (503, "overloaded")
    assert int(second.headers["Retry-After"]) > 0
    assert cells.summary().status_code == 200


def test_what_would_take_long_is_given_up(cells, monkeypatch):
    """Three questions in two cells are six parts."""
    monkeypatch.setattr(running_summary, "MOST_PARTS", 6)
    assert cells.summary().status_code == 200
    monkeypatch.setattr(running_summary, "MOST_PARTS", 5)
    assert problem(cells.summary()) == (409, "summary-too-costly")
    monkeypatch.undo()
    assert cells.summary().status_code == 200
