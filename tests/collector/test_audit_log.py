"""The audit log says who did what on which day, and its lines stay."""

import json
import re

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from collector.audit_log import entries
from tests.kit.collectors import build_report
from tests.kit.operators import lines


def test_audit_log_records_key_action_study_and_day(habits, study, capsys):
    report = build_report(study)
    habits.put(report)
    habits.withdraw(report.id)
    habits.export()
    for command in (("open", "habits"), ("close", "habits", "--yes")) * 2:
        habits.operate(*command)
    habits.operate("keys", "ann", "--role", "read")
    capsys.readouterr()
    habits.operate("status", "--log")
    found = [line.split("\t") for line in lines(capsys)]
    actions = {(key, action, study) for _, key, action, study, _ in found}
    assert {(key, action) for key, action, study in actions if study == "habits"} >= {
        ("(token)", action) for action in ("publish", "delete reports", "export", "close")
    }
    assert ("(token)", "add key", "") in actions
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day, *_ in found)
    with habits.collector.database.read() as session:
        assert report.id not in str(entries(session, 100))
    habits.operate("status", "--log", "--json")
    assert len(json.loads(capsys.readouterr().out)) == len(found)


def test_audit_log_line_cannot_be_changed(either):
    copy = "INTO audit_log SELECT id, at, 'nobody', action, study, detail FROM audit_log"
    # SQLite's REPLACE deletes the old line without asking the trigger of deletions.
    replace = {
        "sqlite": f"REPLACE {copy}",
        "postgresql": f"INSERT {copy} ON CONFLICT (id) DO UPDATE SET key = 'nobody'",
    }
    database = either.collector.database
    replacing = replace[database.engine.dialect.name]
    for statement in ("UPDATE audit_log SET key = 'nobody'", "DELETE FROM audit_log", replacing):
        with pytest.raises(DatabaseError, match="append-only"), database.write() as session:
            session.execute(text(statement))
