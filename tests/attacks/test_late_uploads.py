"""A withdrawn report arrives afterwards: its upload was under way, or a third party kept it.

Defence: The collector: the id of a withdrawn report stays refused while the study is open, whatever
expires, even if the report had not arrived yet; a tenth of `deletion_rate` limits how many withdrawals of
unknown reports are stored.
"""

from __future__ import annotations

import os

import pytest

from collector.reports import withdrawing
from collector.reports.limits import TokenBucket
from ldp_client.documents.report import report_id_of
from tests.collector.answered import problem
from tests.collector.conftest import Harness, build_report, build_study


@pytest.fixture
def collecting(tmp_path, monkeypatch):
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(withdrawing, "TokenBucket", lambda rate, _clock: TokenBucket(rate, lambda: 0.0))
    harness = Harness(f"sqlite:///{tmp_path / 'collector.sqlite3'}", deletion_rate="5")
    harness.publish(build_study())
    yield harness
    harness.collector.close()


def test_report_uploaded_after_its_withdrawal_is_refused(collecting):
    late = build_report(build_study())
    for _ in range(2):
        answer = collecting.withdraw(late.id, secret=late.secret)
        assert (answer.status_code, answer.json) == (200, {"id": late.id, "result": "withdrawn"})
    assert problem(collecting.put(late)) == (410, "report-withdrawn")
    assert collecting.exported() == []
    other = build_report(build_study())
    assert collecting.put(other).status_code == 201
    assert collecting.exported() == [other]
    assert collecting.summary().json["questions"]["ever"]["n"] == 1


def test_operator_key_cannot_withdraw_an_unknown_report(collecting):
    report_id = build_report(build_study()).id
    assert problem(collecting.withdraw(report_id)) == (404, "report-unknown")


def test_withdrawals_of_unknown_reports_are_rate_limited(collecting):
    """Anyone can draw secrets, and each such withdrawal stores a row permanently."""
    secrets = [os.urandom(16) for _ in range(7)]
    answers = [collecting.withdraw(report_id_of(secret), secret=secret) for secret in secrets]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    mine = build_report(build_study())
    collecting.put(mine)
    assert collecting.withdraw(mine.id, secret=mine.secret).status_code == 200


def test_withdrawal_is_remembered_in_a_closed_study(collecting):
    collecting.close()
    late = build_report(build_study())
    assert collecting.withdraw(late.id, secret=late.secret).status_code == 200
    assert problem(collecting.put(late)) == (410, "report-withdrawn")
