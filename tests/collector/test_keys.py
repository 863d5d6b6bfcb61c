"""Keys are stored as hashes and belong to studies; the audit log says who did what on which day."""

import hashlib
import json
import re

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from collector.audit_log import entries
from collector.keys import Role, add_key
from tests.kit.answers import client_of
from tests.kit.collectors import build_report, build_study
from tests.kit.operators import lines


def test_only_the_hash_of_a_key_is_stored(habits, capsys):
    habits.operate("keys", "someone", "--role", "read")
    key = capsys.readouterr().out.strip()
    (row,) = habits.sql("SELECT name, role, hash FROM keys")
    assert (row.name, row.role, bytes(row.hash)) == ("someone", "read", hashlib.sha256(key.encode()).digest())
    assert len(key) >= 40


@pytest.mark.attack(14)
def test_key_of_one_study_sees_nothing_of_others(habits):
    """Use a key for one study to read the lists of all."""
    habits.publish(build_study(id="other", title="Another study"))
    key = habits.write(add_key, "ann", Role.OPERATE, ["habits"])
    headers = {"Authorization": f"Bearer {key}"}
    listed = habits.client.get("/v1/studies", headers=headers).get_json()["studies"]
    assert [study["id"] for study in listed] == ["habits"]
    lines = habits.client.get("/v1/audit-log", headers=headers).get_json()["entries"]
    assert {line["study"] for line in lines} == {"habits"}
    assert "Another study" not in client_of(habits, key).get("/").text


@pytest.mark.attack(15)
@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
@pytest.mark.parametrize("path", ["/", "/v1/studies/habits/export"])
def test_non_ascii_key_is_rejected_as_wrong(habits, caplog, scheme, path):
    """Send a key that is no text: it is a wrong key, and no server error with lines in the log."""
    answer = habits.client.get(path, headers={"Authorization": f"{scheme} \xff"})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "a request failed" not in caplog.text


def test_audit_log_records_key_action_study_and_day(habits, study, capsys):
    report = build_report(study)
    habits.put(report)
    habits.withdraw(report.id)
    habits.export()
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
    # Frequent actions have one line a day.
    assert [action for _, _, action, _, _ in found].count("export") == 1
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
