"""Tries to slow a collector by transactions that wait for each other, and to date a deletion by a line."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from collector.metrics import Metrics
from collector.reports.withdrawing import Deletions
from collector.reports.writer import Change, Upload
from collector.storage import queries
from collector.storage.sums import add_sums, read_sums
from tests.collector.conftest import build_report, build_study


def test_two_processes_never_wait_in_a_circle_for_uploads_and_deletions(make_harness, postgresql):
    """One has upload x and a deletion of y in hand, the other upload y and a deletion of x, at once."""
    study, url = build_study(), postgresql.new_database()
    harnesses = [make_harness(database=url), make_harness(database=url)]
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
            return queries.insert_withdrawn(session, stored.number, collector.today(), other)

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


def test_what_postgresql_ends_for_another_is_done_again(make_harness, postgresql):
    """Two workers whose process numbers give them one row of sums delete reports of two versions at once."""
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, busy_timeout=10) for _ in range(2)]
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


def test_no_line_of_the_log_dates_one_deletion(caplog):
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
