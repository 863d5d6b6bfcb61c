"""`ldpkit status --health`: a line for each subject, and exit code 1 if one needs action."""

import json
import shutil
from datetime import timedelta

import pytest

from collector import audit_log, status
from collector.keys import Role, add_key
from tests.kit.collectors import build_report, build_study
from tests.kit.operators import main_on


@pytest.fixture
def checked(habits, capsys, tmp_path, monkeypatch):
    """A function that returns the exit code and the checks that fail; `habits` was backed up today."""
    monkeypatch.setattr(audit_log, "_now", lambda: habits.day.isoformat())
    main_on(f"sqlite:///{habits.path}", "backup", "--out", str(tmp_path / "first.sqlite3"))

    def checked():
        habits.collector.studies.forget()
        capsys.readouterr()
        code = habits.exit_code("status", "--health", "--json")
        checks = json.loads(capsys.readouterr().out)
        assert {check["name"] for check in checks} >= {"backup", "keys", "disk", "studies", "exports"}
        return code, [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]

    return checked


def test_healthy_collector_has_a_line_for_each_subject(habits, checked, capsys):
    assert checked() == (0, [])
    assert habits.exit_code("status", "--health") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [state for state, *_ in lines] == ["ok"] * 6
    assert [name for _, name, _ in lines] == ["backup", "keys", "disk", "studies", "exports", "certificate"]


def test_collector_that_was_never_backed_up_needs_action(empty, capsys):
    assert empty.exit_code("status", "--health") == 1
    assert "ACT\tbackup\tnone was made by `ldpkit backup`" in capsys.readouterr().out


def test_each_subject_that_needs_action_is_named(habits, checked, monkeypatch):
    def names():
        code, lines = checked()
        assert code == 1
        return [line.partition(":")[0] for line in lines]

    for name, days in (("soon", 10), ("later", 100)):
        habits.write(add_key, name, Role.READ, None, habits.day + timedelta(days))
    usage = shutil.disk_usage(habits.path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=1000))
    habits.publish(build_study(id="other", closes=habits.day.isoformat()))
    habits.day += timedelta(status.BACKUP_DAYS)
    # Late reports of an ended study are taken for seven days.
    assert names() == ["keys", "disk"]
    habits.day += timedelta(1)
    assert names() == ["backup", "keys", "disk", "studies"]
    habits.close("other")
    assert names() == ["backup", "keys", "disk"]


def test_export_from_before_a_withdrawal_needs_action_until_the_next(habits, checked, study):
    reports = [build_report(study) for _ in range(3)]
    habits.post([report.to_document() for report in reports])
    habits.withdraw(reports[0].id)
    assert checked() == (0, [])
    habits.export()
    assert checked() == (0, [])
    habits.withdraw(reports[1].id)
    code, (line,) = checked()
    assert code == 1
    assert "reports of habits were withdrawn since its last export" in line
    habits.export()
    assert checked() == (0, [])
