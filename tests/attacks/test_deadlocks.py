"""Transactions that wait for each other slow a collector down, or a log line dates a deletion.

Defence: The collector: locks rows in one order, under any collation, and retries what PostgreSQL aborts
nevertheless, including the daily upkeep.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import numpy as np
from sqlalchemy import text

from collector.metrics import Metrics
from collector.reports import intake
from collector.reports.withdrawing import Deletions
from collector.reports.writer import Change, Upload
from collector.secure_sum import summing
from collector.storage import queries, upkeep
from collector.storage.emptying import insert_withdrawn
from collector.storage.packing import PackedReport
from collector.storage.sums import add_sums, read_sums
from tests.collector.conftest import build_report, build_study


def test_concurrent_uploads_and_deletions_do_not_deadlock(make_harness, postgresql):
    """One process uploads x and deletes y while the other uploads y and deletes x."""
    study, url = build_study(), postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=10) for _ in range(2)]
    harnesses[0].publish(study)
    reports = sorted((build_report(study) for _ in range(2)), key=lambda report: report.id)
    both_uploaded = threading.Barrier(2, timeout=10)
    outcomes = {}

    def run(number):
        collector = harnesses[number].collector
        other = bytes.fromhex(reports[1 - number].id)

        def withdraw(session):
            both_uploaded.wait()
            stored = queries.study_state(session, study.id, keep=True)
            return insert_withdrawn(session, stored.number, collector.today(), other)

        packed = collector.rules.find(study.id, study.version).pack(reports[number])
        works = [Upload(study.id, [packed]), Change((study.id, other), withdraw)]
        try:
            outcomes[number] = collector.writer._store(works)
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [outcome[1] for _, outcome in sorted(outcomes.items())] == [False, False]


def test_transaction_ended_by_a_deadlock_is_retried(make_harness, postgresql):
    """Two workers that share one row of sums delete reports of two versions at once."""
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=10) for _ in range(2)]
    for version in (1, 2):
        harnesses[0].publish(build_study(version))
    both_wait = threading.Barrier(2, timeout=10)
    size = harnesses[0].collector.rules.find("habits", 1).tally.size
    tries = [0, 0]

    def run(number):
        def add(session, version):
            add_sums(session, 1, version, np.ones(size, np.int64))
            if version == 1 + number:
                tries[number] += 1
                if tries[number] == 1:
                    both_wait.wait()

        order = [1 + number, 2 - number]
        works = [
            Change(("habits", bytes([place])), partial(add, version=version))
            for place, version in enumerate(order)
        ]
        harnesses[number].collector.writer._store(works)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, range(2), timeout=30))
    # PostgreSQL may end either of them, and on a busy machine both.
    assert max(tries) > 1
    with harnesses[0].collector.database.read() as session:
        assert all((read_sums(session, 1, version, size) == 2).all() for version in (1, 2))


def test_studies_are_locked_in_one_order_under_any_collation(make_harness, postgresql):
    """Uploads lock "a-c" first; a database with English collation sorts "a_b" before it."""
    harness = make_harness(database=postgresql.new_database(), lock_timeout=10)
    with harness.collector.database.write() as session:
        session.execute(text('ALTER TABLE studies ALTER COLUMN id TYPE varchar(64) COLLATE "en-x-icu"'))
    for study_id in ("a_b", "a-c"):
        assert harness.publish(build_study(id=study_id)).status_code == 201
    with harness.collector.database.read() as session:
        by_database = list(session.scalars(text("SELECT id FROM studies ORDER BY id")))
        assert by_database == ["a_b", "a-c"]
        assert [study_id for study_id, _ in queries.study_numbers(session)] == sorted(by_database)


def test_upkeep_ended_by_a_deadlock_is_retried(make_harness, postgresql, monkeypatch, caplog):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=10)
    database, clock = harness.collector.database, [0.0]
    daily = upkeep.Upkeep(database, lambda: harness.day, b"", lambda: clock[0])
    take_day, ended = upkeep._take_day, []

    def end(session, day):
        if len(ended) in times:
            ended.append(day)
            session.execute(text("DO $$ BEGIN RAISE EXCEPTION 'ended' USING ERRCODE = '40P01'; END $$"))
        ended.append(day)
        return take_day(session, day)

    monkeypatch.setattr(upkeep, "_take_day", end)
    times = {0}
    daily.run_if_due()
    assert (len(ended), caplog.text) == (2, "")
    harness.day += timedelta(1)
    times = range(100)
    daily.run_if_due()
    failed = len(ended)
    assert "tried again in 300 s" in caplog.text
    times = ()
    daily.run_if_due()
    assert len(ended) == failed
    clock[0] = 301
    daily.run_if_due()
    assert len(ended) == failed + 1
    with database.read() as session:
        assert upkeep.doubt_of(session, harness.day) == ""
        assert session.scalar(text("SELECT day FROM upkeep")) == harness.day


def test_deletions_are_logged_only_ten_at_a_time(caplog):
    clock = [0.0]
    deletions = Deletions(0, Metrics(), lambda: clock[0])
    with caplog.at_level(logging.WARNING, "collector"):
        for _ in range(9):
            clock[0] += 605
            deletions.count(by_device=True)
        assert not caplog.records
        deletions.count(by_device=True)
    assert [record.message for record in caplog.records] == [
        "deletions since the last such line: 10 by their devices, 0 with an operator's key"
    ]


def test_uploads_stored_separately_lock_rows_in_id_order():
    """Two processes store the same uploads one by one after storing them together failed."""
    study = build_study()
    packed = [PackedReport(bytes([place]) * 16, 1, b"") for place in (9, 3, 5)]
    uploads = [Upload(study.id, [one]) for one in packed]
    order = []

    def together(_session, _study_id, some):
        if len(some) > 1:
            raise ValueError("not together")
        order.extend(one.id for upload in some for one in upload.reports)
        return [upload.reports[0].id for upload in some]

    session = SimpleNamespace(begin_nested=contextlib.nullcontext)
    assert intake._apart(session, study.id, uploads, together) == [one.id for one in packed]
    assert order == sorted(order)


def test_concurrent_closers_get_the_same_commitment(network, monkeypatch):
    """The second closer looked before the first commitment was stored."""
    network.publish("ever")
    network.answer(15)
    node = network.nodes[0]
    assert node.post("/close").status_code == 200
    first = node.post("/commitment").get_json()
    find_part, looked = summing.find_part, []

    def late(session, study, keep=False):
        looked.append(study)
        return find_part(session, study, keep) if len(looked) > 1 else None

    monkeypatch.setattr(summing, "find_part", late)
    second = node.post("/commitment")
    assert (second.status_code, second.get_json()) == (200, first)
    assert len(looked) == 2
