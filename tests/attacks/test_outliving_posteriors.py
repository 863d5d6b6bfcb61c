"""Withdraw all reports of a study after they were fitted: what was fitted outlives the stated retention."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from collector.operator.days import Days
from collector.operator.fitting import Fitted, keep_fitted, last_fitted
from tests.collector.conftest import build_report


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("closes", [2, None])
def test_a_posterior_goes_when_its_reports_had_to(make_harness, make_study, closed, closes):
    harness = make_harness()
    last = {} if closes is None else {"closes": (harness.day + timedelta(closes)).isoformat()}
    study = make_study(id="closing", retention={"days": 10}, **last)
    harness.publish(study)
    reports = [build_report(study) for _ in range(3)]
    for report in reports:
        assert harness.put(report).status_code == 201
    day = (harness.day - date(1970, 1, 1)).days
    with harness.collector.database.write() as session:
        keep_fitted(session, 1, 1, Fitted(day, {"ever": {"mean": 0.5}}))
    for report in reports:
        assert harness.withdraw(report.id, "closing", report.secret).status_code == 200
    if closed:
        harness.close("closing")
    days, kept = Days(harness.collector), []
    for _ in range(15):
        harness.day += timedelta(1)
        days.look()
        with harness.collector.database.read() as session:
            kept.append(last_fitted(session, 1, 1) is not None)
    assert kept == [True] * (10 + (closes or 0)) + [False] * (5 - (closes or 0))
