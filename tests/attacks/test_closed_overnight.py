"""A study is closed for one night while its retention runs, and can then never be reopened.

Defence: The collector: keeps the ids of withdrawn reports until the study is deleted or permanently
closed.
"""

from __future__ import annotations

from datetime import timedelta

from collector.operator.daily import Days
from tests.collector.answered import problem
from tests.collector.conftest import build_report


def switch(harness, action):
    return harness.client.post(f"/v1/studies/rolling/{action}", headers=harness.operator).status_code


def pass_days(harness, count):
    days = Days(harness.collector)
    for _ in range(count):
        harness.day += timedelta(1)
        days.look()


def test_retention_does_not_end_a_study_closed_for_one_night(make_harness, make_study):
    harness = make_harness()
    study = make_study(id="rolling", retention={"days": 30})
    harness.publish(study)
    withdrawn, other = build_report(study), build_report(study)
    for report in (withdrawn, other):
        harness.put(report)
    harness.withdraw(withdrawn.id, "rolling", withdrawn.secret)
    pass_days(harness, 30)
    assert harness.put(build_report(study)).status_code == 201
    assert switch(harness, "close") == 200
    pass_days(harness, 1)
    assert switch(harness, "open") == 200
    assert harness.put(build_report(study)).status_code == 201
    # What was withdrawn stays out.
    assert problem(harness.put(withdrawn))[1] == "report-withdrawn"
