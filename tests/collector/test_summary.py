"""The running summary says at every moment what the stored reports say."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import get_ident

import pytest

from collector.reports import rules, running_summary
from collector.storage import sums
from ldp_client import mechanism_for
from schemas import Report
from summaries import Summary, summarize
from summaries.reductions import REDUCTIONS
from summaries.reductions.choice import SUPPORTS
from tests.collector.answered import problem
from tests.collector.conftest import TODAY, Harness
from tests.kit.deleting import delete_reports, delete_study

MANY = [f"choice {number}" for number in range(8200)]
WIDE = {
    "id": "wide",
    "ask": "choice",
    "choices": MANY,
    "mechanism": {"name": "oue", "epsilon": "1"},
    "model": {"name": "multinomial"},
}


@pytest.fixture
def either(make_harness, database_url, study):
    """A collector on each kind of database, with the study published."""
    harness = make_harness(database=database_url, lock_timeout=10)
    assert harness.publish(study).status_code == 201
    return harness


def assert_exact(harness, *studies):
    exported = harness.exported()
    for study in studies:
        answered = [report for report in exported if report.version == study.version]
        summary = harness.summary(study.id, version=study.version)
        expected = summarize(study, answered) if answered else Summary.empty(study)
        assert summary.text == expected.to_json()


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
    either.withdraw(first[2].id)
    either.withdraw(first[2].id)
    assert_exact(either, study, later)
    assert either.summary().text == either.summary(version=2).text


@pytest.mark.slow
def test_running_summary_excludes_deleted_reports(either, study, make_report):
    either.post([make_report(study).to_document() for _ in range(3)])
    either.withdraw(either.exported()[0].id)
    either.day = TODAY + timedelta(3)
    either.post([make_report(study).to_document() for _ in range(2)])
    assert delete_reports(either.collector.database, "habits", TODAY + timedelta(1)) == 2
    assert_exact(either, study)
    assert either.summary().get_json()["questions"]["ever"]["n"] == 2
    delete_study(either.collector.database, "habits")
    assert problem(either.summary()) == (410, "study-deleted")
    with either.collector.database.write() as session:
        assert running_summary.recount(session) == []


def test_counts_of_concurrent_processes_add_up(postgresql, make_harness, study, make_report, monkeypatch):
    """Four writers, two to a slot, all making the first rows at once."""
    threads = {}
    monkeypatch.setattr(sums, "_slot", lambda _: threads.setdefault(get_ident(), len(threads)) % 2)
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


def test_large_summary_is_counted_on_request(empty, make_study, make_report):
    first, study = make_study(1), make_study(2, questions=[WIDE])
    empty.publish(first)
    empty.put(make_report(first))
    empty.publish(study)
    assert not empty.collector.rules.find("habits", 2).tally.is_kept
    for _ in range(3):
        payloads = {"wide": os.urandom(len(MANY) // 8)}
        empty.put(Report(os.urandom(16).hex(), study.id, 2, study.digest, payloads))
    assert_exact(empty, first, study)


def test_costly_summary_is_counted_on_request_up_to_a_limit(empty, make_study, monkeypatch):
    hashed = {**WIDE, "choices": {"count": 200}, "mechanism": {"name": "olh", "epsilon": "1"}}
    study = make_study(questions=[hashed])
    empty.publish(study)
    assert not empty.collector.rules.find("habits", 1).tally.is_kept
    perturb = mechanism_for(study.questions[0]).perturb
    for choice in (0, 199):
        payloads = {"wide": perturb(choice)}
        assert empty.put(Report(os.urandom(16).hex(), study.id, 1, study.digest, payloads)).status_code == 201
    assert_exact(empty, study)
    monkeypatch.setattr(running_summary, "MOST_HASHES", 399)
    refused = empty.summary()
    assert (refused.status_code, refused.get_json(force=True)["type"]) == (
        409,
        "urn:ldpkit:problem:summary-too-costly",
    )


def test_the_work_of_any_mechanism_counts(make_study, monkeypatch):
    """An added mechanism counts too, with supports looked up choice by choice, like olh."""
    one = {**WIDE, "choices": {"count": 12}}
    study = make_study(questions=[one, {**one, "id": "other", "mechanism": {"name": "olh", "epsilon": "1"}}])
    assert rules.Rules.of(study).tally.hashes == 12
    monkeypatch.setitem(REDUCTIONS, "oue", SUPPORTS)
    assert rules.Rules.of(make_study(2, questions=study.document["questions"])).tally.hashes == 24


def test_kept_summaries_are_limited_by_bytes(habits, monkeypatch):
    kept = habits.collector.rules.find("habits", 1).tally
    assert kept.is_kept
    monkeypatch.setattr(rules, "MOST_KEPT_BYTES", 8 * kept.size - 1)
    assert not kept.is_kept


def test_summary_needs_a_read_key_and_supports_etags(habits, study, make_report):
    assert habits.client.get("/v1/studies/habits/summary").status_code == 401
    assert habits.summary("nosuch").status_code == 404
    assert habits.summary(version=2).status_code == 404
    assert habits.summary(version="x").status_code == 422
    headers = {**habits.operator, "If-None-Match": habits.summary().headers["ETag"]}
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 304
    habits.put(make_report(study))
    assert habits.client.get("/v1/studies/habits/summary", headers=headers).status_code == 200
