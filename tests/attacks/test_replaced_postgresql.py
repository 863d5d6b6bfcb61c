"""Restores a database under a running server, so that it takes one document's reports for another's.

Defence: The collector: compares the digest in the transaction that stores, exports or sums up; 503 until it
is started again.
"""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from collector.storage.database import Database
from collector.storage.models import DocumentRow, ReportRow, StudyRow, SumsRow
from collector.studies.publishing import publish
from tests.collector.answered import problem
from tests.collector.conftest import QUESTIONS, build_report, build_study


@pytest.fixture
def restored(make_harness, database_url):
    """A server with the rules of version 2, its reports, and another version 2 in its restored database."""
    harness = make_harness(database=database_url)
    first, second = build_study(), build_study(2)
    harness.publish(first)
    old = build_report(first)
    assert harness.put(old).status_code == 201
    harness.publish(second)
    gone = build_report(second)
    assert harness.put(gone).status_code == 201
    stronger = [
        {**one, "mechanism": {**one["mechanism"], "epsilon": "3"}} if one["id"] == "hours" else one
        for one in QUESTIONS
    ]
    other = build_study(2, questions=stronger)
    assert other.digest != second.digest
    # By another server or command, as `psql -f backup.sql` would.
    with (database := Database(database_url, 10)).write() as session:
        for table in (ReportRow, SumsRow, DocumentRow):
            session.execute(delete(table).where(table.version == 2))
        session.execute(update(StudyRow).values(version=1))
        publish(session, other)
    database.engine.dispose()
    return harness, first, second, other


def test_report_is_not_stored_under_changed_document(restored, caplog):
    harness, _, second, other = restored
    for _ in range(3):
        assert problem(harness.put(build_report(second))) == (503, "unavailable")
        assert harness.put(build_report(other)).status_code in (422, 503)
    assert "has to be started again" in caplog.text
    assert "habits" in caplog.text


def test_export_and_summary_refuse_changed_document(restored):
    harness, *_ = restored
    for what in ("export", "summary"):
        answer = harness.client.get(f"/v1/studies/habits/{what}", headers=harness.operator)
        assert problem(answer) == (503, "unavailable")


def test_restarted_server_accepts_reports_of_restored_document(restored, make_harness, database_url):
    _, first, second, other = restored
    again = make_harness(database=database_url)
    assert again.put(build_report(other)).status_code == 201
    assert again.put(build_report(first)).status_code == 201
    assert problem(again.put(build_report(second)))[0] in (400, 422)
