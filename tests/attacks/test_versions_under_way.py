"""Publish a version while reports of the one before arrive: none may be refused, lost or miscounted.

Attack: Publishing a version while reports of the one before arrive: the collector: takes each version for
as long as its own document says, and counts each report with its version.

Attack: To have reports dropped that answer a version which a restored database lost: the collector:
`version-unknown`, which says to keep them; every refusal that says to drop a report names the condition
that devices go by.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from collector import problems
from ldp_client.device.requests import FINAL
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


def test_report_is_accepted_until_its_own_version_closes(two):
    assert problem(two.put(build_report(SECOND))) == (425, "study-not-open")
    mixed = [build_report(study).to_document() for study in (SECOND, FIRST)]
    answer = two.post(mixed).get_json()
    assert (answer["stored"], [each["id"] for each in answer["failed"]]) == (1, [mixed[0]["id"]])
    for after in (0, 3, 3 + 7):
        two.day = TODAY + timedelta(after)
        assert two.put(build_report(FIRST)).status_code == 201


def test_open_version_accepts_reports_of_all_versions(two):
    two.day = TODAY + timedelta(15)
    assert two.put(build_report(FIRST)).status_code == 201
    two.day = TODAY + timedelta(40)
    for study in (FIRST, SECOND):
        assert problem(two.put(build_report(study))) == (410, "study-closed")


def test_closed_study_accepts_no_reports(two):
    two.close()
    assert problem(two.put(build_report(FIRST))) == (410, "study-closed")


def test_every_report_of_a_race_is_counted_with_its_own_version(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=20)
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


def test_report_of_version_lost_by_restore_is_kept(make_harness):
    """A sender that follows the advice would drop a report that is accepted after republishing."""
    harness, lost = make_harness(), build_study(version=2)
    harness.publish(build_study())
    late = build_report(lost)
    said = harness.put(late).get_json(force=True)
    assert said["type"] == "urn:ldpkit:problem:version-unknown"
    assert (said["field"], "digest" in said, "drop" in said["advice"].lower()) == ("version", False, False)
    sent = harness.post([late.to_document(), build_report(build_study()).to_document()]).json
    assert (sent["stored"], [one["type"] for one in sent["failed"]]) == (1, [said["type"]])
    harness.publish(lost)
    assert harness.put(late).status_code == 201


def test_problem_advice_matches_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
