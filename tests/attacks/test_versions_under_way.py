"""Publish a version while reports of the one before arrive: none may be refused, lost or miscounted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from summaries import summarize
from tests.collector.answered import problem
from tests.collector.conftest import TODAY, build_report, build_study

OPEN = {"opens": TODAY.isoformat(), "closes": (TODAY + timedelta(3)).isoformat()}
LATER = {"opens": (TODAY + timedelta(10)).isoformat(), "closes": (TODAY + timedelta(20)).isoformat()}
FIRST, SECOND = build_study(**OPEN), build_study(2, **LATER)


@pytest.fixture
def two(empty):
    """Version 1 is over in three days, version 2 opens in ten."""
    for study in (FIRST, SECOND):
        assert empty.publish(study).status_code == 201
    return empty


def test_what_was_answered_in_time_waits_for_no_later_version(two):
    assert problem(two.put(build_report(SECOND))) == (425, "study-not-open")
    mixed = [build_report(study).to_document() for study in (SECOND, FIRST)]
    answer = two.post(mixed).get_json()
    assert (answer["stored"], [each["id"] for each in answer["failed"]]) == (1, [mixed[0]["id"]])
    for after in (0, 3, 3 + 7):
        two.day = TODAY + timedelta(after)
        assert two.put(build_report(FIRST)).status_code == 201


def test_an_open_version_lets_all_in(two):
    two.day = TODAY + timedelta(15)
    assert two.put(build_report(FIRST)).status_code == 201
    two.day = TODAY + timedelta(40)
    for study in (FIRST, SECOND):
        assert problem(two.put(build_report(study))) == (410, "study-closed")


def test_a_close_lets_none_in(two):
    two.close()
    assert problem(two.put(build_report(FIRST))) == (410, "study-closed")


def test_every_report_of_a_race_is_counted_with_its_own_version(make_harness, database_url):
    harness = make_harness(database=database_url, busy_timeout=20)
    versions = [build_study(number, title=f"Habits {number}") for number in (1, 2, 3)]
    harness.publish(versions[0])
    reports = [build_report(versions[0]) for _ in range(60)]
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(harness.put, report) for report in reports]
        for study in versions[1:]:
            assert harness.publish(study).status_code == 201
            new = [build_report(study) for _ in range(20)]
            sent += [pool.submit(harness.put, report) for report in new]
            reports += new
    assert {answer.result().status_code for answer in sent} == {201}
    for study in versions:
        own = [report for report in reports if report.version == study.version]
        assert harness.summary("habits", version=study.version).text == summarize(study, own).to_json()
