"""The running summary is at every moment that of the stored reports."""

import pytest

from summaries import Summary, summarize
from tests import studies
from tests.kit.answers import problem
from tests.kit.collectors import build_study, device_report

WIDE = {
    "id": "wide",
    "ask": "choice",
    "choices": {"count": 8200},
    "mechanism": {"name": "oue", "epsilon": "1"},
    "model": {"name": "multinomial"},
}


def assert_exact(harness, *studies):
    exported = harness.exported()
    for study in studies:
        answered = [report for report in exported if report.version == study.version]
        expected = summarize(study, answered) if answered else Summary.empty(study)
        assert harness.summary(study.id, version=study.version).text == expected.to_json()


def test_summary_needs_a_read_key_and_supports_etags(habits, study, make_report):
    assert habits.client.get("/v1/studies/habits/summary").status_code == 401
    assert [habits.summary(*which, **query).status_code for which, query in (
        (("nosuch",), {}), ((), {"version": 2}), ((), {"version": "x"}))] == [404, 404, 422]  # fmt: skip
    headers = {**habits.operator, "If-None-Match": habits.summary().headers["ETag"]}
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 304
    habits.put(make_report(study))
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 200


@pytest.mark.attack(15)
@pytest.mark.parametrize(("choices", "mechanism"), [(8200, "oue"), (200, "olh")])
def test_summary_that_would_slow_down_uploads_is_not_kept(empty, make_study, choices, mechanism):
    """Publish a study with a summary that is long, or costs many hashes: uploads do not pay for it."""
    question = {**WIDE, "choices": {"count": choices}, "mechanism": {"name": mechanism, "epsilon": "1"}}
    study = make_study(questions=[question])
    empty.publish(study)
    assert not empty.collector.rules.find("habits", 1).tally.is_kept
    assert empty.put(device_report(study, wide=7)).status_code == 201
    assert problem(empty.summary()) == (409, "summary-too-costly")
    assert empty.sql("SELECT * FROM sums") == []


def test_the_running_summary_is_kept_by_cell(empty):
    fields = [
        {"id": "age", "bounds": ["0", "2"], "step": "1"},
        {"id": "region", "choices": ["north", "south"]},
    ]
    study = build_study(questions=build_study().document["questions"][2:], public=fields)
    empty.publish(study)
    reports = [device_report(study, age=n % 3, region=["north", "south"][n % 2]) for n in range(20)]
    assert empty.post([report.to_document() for report in reports]).json["stored"] == 20
    assert_exact(empty, study)
    summary = Summary.from_json(empty.summary().text, study)
    assert (len(summary.cells), summary.questions["ever"].n) == (6, 20)
    for report in reports[::6]:
        empty.withdraw(report.id)
    assert_exact(empty, study)


def test_study_of_one_question_a_device_is_summarized(empty):
    study = build_study(sample_one_question=True)
    empty.publish(study)
    reports = [device_report(study) for _ in range(30)]
    assert empty.post([report.to_document() for report in reports]).get_json()["stored"] == 30
    assert_exact(empty, study)
    empty.withdraw(reports[0].id)
    assert empty.summary().text == summarize(study, reports[1:]).to_json()


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
