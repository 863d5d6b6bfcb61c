"""The running summary is at every moment that of the stored reports."""

import pytest

from summaries import Summary, summarize
from tests import studies
from tests.kit.answers import problem
from tests.kit.collectors import QUESTIONS, build_study, device_report


def test_summary_supports_etags(habits, study, make_report):
    headers = {**habits.operator, "If-None-Match": habits.summary().headers["ETag"]}
    statuses = [habits.client.get("/v1/studies/habits/summary", headers=headers).status_code]
    habits.put(make_report(study))
    statuses.append(habits.client.get("/v1/studies/habits/summary", headers=headers).status_code)
    assert statuses == [304, 200]


@pytest.mark.attack(15)
@pytest.mark.parametrize(("choices", "mechanism"), [(8200, "oue"), (200, "olh")])
def test_summary_that_would_slow_down_uploads_is_not_kept(empty, choices, mechanism):
    """Publish a study with a summary that is long, or costs many hashes: uploads do not pay for it."""
    fruit = {**QUESTIONS[1], "choices": {"count": choices}, "mechanism": {"name": mechanism, "epsilon": "1"}}
    study = build_study(questions=[fruit])
    empty.publish(study)
    assert empty.put(device_report(study, fruit=7)).status_code == 201
    assert problem(empty.summary()) == (409, "summary-too-costly")
    assert empty.sql("SELECT * FROM sums") == []


FIELDS = [{"id": "age", "bounds": ["0", "2"], "step": "1"}, {"id": "region", "choices": ["north", "south"]}]


@pytest.mark.parametrize(
    ("changes", "cells"),
    [({"questions": QUESTIONS[2:], "public": FIELDS}, 6), ({"sample_one_question": True}, 0)],
    ids=["by cell", "of one question a device"],
)
def test_running_summary_is_that_of_the_reports(empty, changes, cells):
    study = build_study(**changes)
    empty.publish(study)
    public = [{"age": n % 3, "region": ["north", "south"][n % 2]} if cells else {} for n in range(20)]
    reports = [device_report(study, **values) for values in public]
    assert empty.post([report.to_document() for report in reports]).json["stored"] == 20
    assert len(Summary.from_json(empty.summary().text, study).cells or ()) == cells
    for report in reports[::6]:
        assert empty.summary().text == summarize(study, empty.exported()).to_json()
        empty.withdraw(report.id)
    assert empty.summary().text == summarize(study, empty.exported()).to_json()


def test_study_that_needs_whole_reports_has_no_summary(empty):
    empty.publish(build_study(questions=[studies.YES_NO_RECORD]))
    response = empty.summary()
    assert problem(response) == (409, "summary-impossible")
    assert response.get_json()["field"] == "questions.chance"


@pytest.mark.attack(19)
@pytest.mark.parametrize("sums", [bytes(8), b""])
def test_damaged_sums_are_rejected_until_the_study_is_deleted(habits, study, make_report, sums):
    """Damage the rows of a running summary: no report may be miscounted."""
    assert habits.put(make_report(study)).status_code == 201
    habits.sql("UPDATE sums SET sums = :sums", sums=sums)
    assert problem(habits.summary()) == problem(habits.put(make_report(study))) == (503, "unavailable")
    assert len(habits.exported()) == 1
    deleted = habits.client.delete("/v1/studies/habits", headers=habits.operator)
    assert deleted.get_json() == {"id": "habits", "deleted": 1, "complete": True}
