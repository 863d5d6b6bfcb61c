"""The running summary is at every moment that of the stored reports; one on request costs little."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

import pytest
from sqlalchemy import text

from collector import store as stored_sums
from collector.reports import paging, sums
from collector.reports.rules import ReportCounter, Rules
from schemas import Report
from summaries import Summary, summarize
from tests import studies
from tests.collector.answered import problem
from tests.collector.conftest import Harness, build_study, device_report
from tests.kit.deleting import delete_reports

WIDE = {
    "id": "wide",
    "ask": "choice",
    "choices": {"count": 8200},
    "mechanism": {"name": "oue", "epsilon": "1"},
    "model": {"name": "multinomial"},
}
TOO_COSTLY = (409, "summary-too-costly")


def assert_exact(harness, *studies):
    exported = harness.exported()
    for study in studies:
        answered = [report for report in exported if report.version == study.version]
        expected = summarize(study, answered) if answered else Summary.empty(study)
        assert harness.summary(study.id, version=study.version).text == expected.to_json()


def test_running_summary_follows_every_change_of_reports(either, study, make_study, make_report):
    assert_exact(either, study)
    first = [make_report(study) for _ in range(5)]
    either.put(first[0])
    either.post([report.to_document() for report in [*first, first[1]]])
    assert_exact(either, study)
    later = make_study(2)
    either.publish(later)
    either.post([make_report(later).to_document(), make_report(study).to_document()])
    either.put(make_report(study, id=first[0].id))
    for _ in range(2):
        either.withdraw(first[2].id)
    assert_exact(either, study, later)
    assert either.summary().text == either.summary(version=2).text


def test_counts_of_concurrent_processes_add_up(postgresql, make_harness, study, make_report, monkeypatch):
    """Four writers, two to a slot, all making the first rows at once."""
    threads = {}
    monkeypatch.setattr(stored_sums, "_slot", lambda _: threads.setdefault(get_ident(), len(threads)) % 2)
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=20) for _ in range(4)]
    harnesses[0].publish(study)
    batches = [[make_report(study).to_document() for _ in range(20)] for _ in harnesses]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(2):
            answers = list(pool.map(Harness.post, harnesses, batches))
    assert [answer.get_json()["duplicates"] for answer in answers] == [20] * 4
    assert len(set(threads.values())) == 4
    assert_exact(harnesses[0], study)


def test_recount_repairs_a_wrong_summary(habits, study, make_report):
    habits.post([make_report(study).to_document() for _ in range(7)])
    right = habits.summary().text
    with habits.collector.database.writing_connection() as connection:
        connection.execute(text("DELETE FROM sums"))
    assert habits.summary().text != right
    for wrong in ([{"study": "habits", "version": 1}], []):
        # Also where the upkeep would be refused.
        habits.day = habits.day.replace(year=habits.day.year + 2)
        assert habits.upkeep(recount=True).get_json()["wrong"] == wrong
        assert habits.summary().text == right


def test_summary_needs_a_read_key_and_supports_etags(habits, study, make_report):
    assert habits.client.get("/v1/studies/habits/summary").status_code == 401
    assert [habits.summary(*which, **query).status_code for which, query in (
        (("nosuch",), {}), ((), {"version": 2}), ((), {"version": "x"}))] == [404, 404, 422]  # fmt: skip
    headers = {**habits.operator, "If-None-Match": habits.summary().headers["ETag"]}
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 304
    habits.put(make_report(study))
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 200


def test_large_summary_is_counted_on_request(empty, make_study, make_report):
    first, study = make_study(1), make_study(2, questions=[WIDE])
    empty.publish(first)
    empty.put(make_report(first))
    empty.publish(study)
    assert not empty.collector.rules.find("habits", 2).tally.is_kept
    for _ in range(3):
        empty.put(Report(os.urandom(16).hex(), study.id, 2, study.digest, {"wide": os.urandom(8200 // 8)}))
    assert_exact(empty, first, study)


def test_costly_summary_is_counted_on_request_up_to_a_limit(empty, make_study, monkeypatch):
    hashed = {**WIDE, "choices": {"count": 200}, "mechanism": {"name": "olh", "epsilon": "1"}}
    study = make_study(questions=[hashed])
    empty.publish(study)
    assert not empty.collector.rules.find("habits", 1).tally.is_kept
    for choice in (0, 199):
        assert empty.put(device_report(study, wide=choice)).status_code == 201
    assert_exact(empty, study)
    monkeypatch.setattr(sums, "MOST_HASHES", 399)
    assert problem(empty.summary()) == TOO_COSTLY


@pytest.mark.parametrize("steps", [2, 4000])
def test_the_running_summary_is_kept_by_cell(empty, steps):
    """Small summaries are written with every commit; larger ones are counted from the reports on request."""
    fields = [{"id": "age", "bounds": ["0", str(steps)], "step": "1"}]
    if steps == 2:
        fields.append({"id": "region", "choices": ["north", "south"]})
    study = build_study(questions=build_study().document["questions"][2:], public=fields)
    empty.publish(study)
    assert Rules.of(study).tally.is_kept == (steps == 2)
    reports = []
    for n in range(20):
        values = {"age": n % 3, "region": ["north", "south"][n % 2]}
        reports.append(device_report(study, **{field["id"]: values[field["id"]] for field in fields}))
    assert empty.post([report.to_document() for report in reports]).json["stored"] == 20
    assert_exact(empty, study)
    summary = Summary.from_json(empty.summary().text, study)
    assert (len(summary.cells), summary.questions["ever"].n) == (6 if steps == 2 else 3, 20)
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


@pytest.fixture
def cells(empty):
    """Three questions in two cells of four thousand: their summary has six parts."""
    questions = [{**build_study().document["questions"][2], "id": f"q{n}"} for n in range(3)]
    study = build_study(questions=questions, public=[{"id": "area", "bounds": ["1", "4000"], "step": "1"}])
    empty.publish(study)
    for area in (1, 1, 2):
        assert empty.put(device_report(study, area=area)).status_code == 201
    return empty


@pytest.mark.attack(15)
@pytest.mark.parametrize(("kind", "name"), [(ReportCounter, "count"), (Summary, "to_json")])
def test_only_one_summary_is_made_at_a_time(cells, monkeypatch, kind, name):
    """A read key asks for summaries on request at once: a process counts one and writes one at a time."""
    started, ended = Event(), Event()
    genuine = getattr(kind, name)

    def slow(*arguments):
        started.set()
        assert ended.wait(30)
        return genuine(*arguments)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
        patched.setattr(kind, name, slow)
        first = pool.submit(cells.app.test_client().get, "/v1/studies/habits/summary", headers=cells.operator)
        try:
            assert started.wait(30)
            patched.setattr(kind, name, genuine)
            second = cells.summary()
        finally:
            ended.set()
        assert first.result(30).status_code == 200
    assert problem(second) == (503, "overloaded")
    assert int(second.headers["Retry-After"]) > 0


@pytest.mark.attack(15)
def test_summary_with_too_many_parts_is_refused(cells, monkeypatch):
    """Ask for a summary of many cells: one with more parts than the limit is refused."""
    monkeypatch.setattr(sums, "MOST_PARTS", 6)
    assert cells.summary().status_code == 200
    monkeypatch.setattr(sums, "MOST_PARTS", 5)
    assert problem(cells.summary()) == TOO_COSTLY


@pytest.mark.attack(15)
def test_huge_summary_is_refused_before_counting(empty, monkeypatch):
    """Ask for a summary of three million choices: it is refused before any report is counted."""
    question = {**WIDE, "choices": {"count": 1_000_000}, "mechanism": {"name": "olh", "epsilon": "1"}}
    empty.publish(build_study(questions=[{**question, "id": name} for name in ("one", "other", "third")]))
    monkeypatch.setattr(sums, "_count_export", lambda *_: pytest.fail("it is counted"))
    monkeypatch.setattr(ReportCounter, "summary", lambda *_: pytest.fail("it is counted"))
    assert problem(empty.summary()) == TOO_COSTLY


def test_summary_counted_during_expiry_asks_for_a_retry(filled, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", 10)
    counted = sums._count_export

    def meanwhile(export, version):
        next(export.pages)
        assert delete_reports(filled.collector.database, "habits")
        return counted(export, version)

    monkeypatch.setattr(sums, "_count_export", meanwhile)
    monkeypatch.setattr(type(filled.collector.rules.find("habits", 1).tally), "is_kept", False)
    answer = filled.summary()
    assert problem(answer) == (503, "unavailable")
    assert "Retry-After" in answer.headers
