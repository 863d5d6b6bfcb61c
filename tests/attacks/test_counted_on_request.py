"""A read key keeps a collector busy by requesting summaries that are counted on request.

Defence: The collector: counts and writes one at a time in a process, aborts what would take more than
about ten seconds, and refuses summaries longer than two million numbers before any work.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from collector.reports import running_summary
from collector.reports.rules import ReportCounter
from ldp_client.answering import perturb_answers
from ldp_client.mechanisms import mechanisms_of
from summaries import Summary
from tests.collector.answered import problem
from tests.collector.conftest import build_study

AREAS = 4000
STUDY = build_study(
    questions=[{**build_study().document["questions"][2], "id": f"q{n}"} for n in range(3)],
    public=[{"id": "area", "bounds": ["1", str(AREAS)], "step": "1"}],
)


HASHED = {
    "ask": "choice",
    "text": "Which product?",
    "choices": {"count": 1_000_000},
    "mechanism": {"name": "olh", "epsilon": "1"},
    "model": {"name": "multinomial"},
}


@pytest.fixture
def cells(empty):
    empty.publish(STUDY)
    mechanisms = mechanisms_of(STUDY)
    answers = {question.id: "yes" for question in STUDY.questions}
    for area in (1, 1, 2):
        assert empty.put(perturb_answers(STUDY, mechanisms, {**answers, "area": area})).status_code == 201
    return empty


def test_only_one_summary_is_counted_at_a_time(cells, monkeypatch):
    started, ended = Event(), Event()
    genuine = ReportCounter.count

    def slow(tally, payloads):
        started.set()
        assert ended.wait(30)
        return genuine(tally, payloads)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
        patched.setattr(ReportCounter, "count", slow)
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


def test_summary_with_too_many_parts_is_refused(cells, monkeypatch):
    """Three questions in two cells make six parts."""
    monkeypatch.setattr(running_summary, "MOST_PARTS", 6)
    assert cells.summary().status_code == 200
    monkeypatch.setattr(running_summary, "MOST_PARTS", 5)
    assert problem(cells.summary()) == (409, "summary-too-costly")
    monkeypatch.undo()
    assert cells.summary().status_code == 200


def test_huge_summary_is_refused_before_counting(empty, monkeypatch):
    """Three questions of a million choices each: the summary is as long without any reports."""
    huge = build_study(questions=[{**HASHED, "id": name} for name in ("one", "other", "third")])
    empty.publish(huge)
    counted = []
    monkeypatch.setattr(running_summary, "_count_export", lambda *_: counted.append(1))
    monkeypatch.setattr(ReportCounter, "summary", lambda *_: counted.append(1))
    assert problem(empty.summary()) == (409, "summary-too-costly")
    assert not counted


def test_only_one_summary_is_written_at_a_time(cells, monkeypatch):
    """Writing one takes longer than counting it, and most of the memory."""
    started, ended = Event(), Event()
    genuine = Summary.to_json

    def slow(summary):
        started.set()
        assert ended.wait(30)
        return genuine(summary)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
        patched.setattr(Summary, "to_json", slow)
        first = pool.submit(cells.app.test_client().get, "/v1/studies/habits/summary", headers=cells.operator)
        try:
            assert started.wait(30)
            patched.setattr(Summary, "to_json", genuine)
            second = cells.summary()
        finally:
            ended.set()
        assert first.result(30).status_code == 200
    assert problem(second) == (503, "overloaded")
