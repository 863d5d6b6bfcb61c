"""A device can withdraw its report, and an operator can delete it, permanently."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from tests.collector.answered import PROBLEM, problem


def test_withdrawn_report_is_not_exported_or_stored_again(habits, study, make_report):
    kept, gone = make_report(study), make_report(study)
    habits.post([kept.to_document(), gone.to_document()])
    for _ in range(2):
        response = habits.withdraw(gone.id, secret=gone.secret)
        assert (response.status_code, response.json) == (200, {"id": gone.id, "result": "withdrawn"})
    assert habits.exported() == [kept]
    assert problem(habits.put(gone)) == (410, "report-withdrawn")
    changed = make_report(study, id=gone.id)
    assert problem(habits.put(changed)) == (410, "report-withdrawn")
    result = habits.post([gone.to_document(), kept.to_document()]).get_json()
    assert result["duplicates"] == 1
    assert [(entry["id"], entry["type"]) for entry in result["failed"]] == [
        (gone.id, PROBLEM + "report-withdrawn")
    ]
    assert habits.exported() == [kept]


def test_the_payload_bytes_are_overwritten(habits, study, make_report):
    report = make_report(study, payloads={"hours": b"\x11\x5a\xc3\x77", "fruit": b"\5", "ever": b"\1"})
    habits.put(report)
    habits.withdraw(report.id)
    with closing(sqlite3.connect(habits.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert bytes.fromhex(report.id) in habits.path.read_bytes()
    assert report.payloads["hours"] not in habits.path.read_bytes()


def test_report_of_a_closed_study_can_be_withdrawn(habits, study, make_report):
    report = make_report(study)
    habits.put(report)
    habits.close()
    assert habits.withdraw(report.id, secret=report.secret).status_code == 200
    assert habits.exported() == []


def test_an_unknown_report_or_study_is_404(habits, study, make_report):
    assert problem(habits.withdraw(os.urandom(16).hex())) == (404, "report-unknown")
    report = make_report(study)
    habits.put(report)
    assert problem(habits.withdraw(report.id, "nosuch")) == (404, "study-unknown")
    assert habits.exported() == [report]


@pytest.mark.parametrize("report_id", ["x", "0" * 31, "0" * 33, "A" * 32])
def test_malformed_report_id_is_422(habits, report_id):
    response = habits.withdraw(report_id)
    assert problem(response) == (422, "parameter-invalid")
    assert response.get_json(force=True)["field"] == "report_id"
