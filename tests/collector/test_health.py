"""`ldpkit status --health`: a line for each subject, and exit code 1 if one needs action."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta

import pytest

from collector import audit_log, health
from collector.keys import Role, add_key
from tests.kit.commands import exit_code
from tests.kit.operators import URL, main_on


@pytest.fixture
def checked(asked, habits, capsys, tmp_path, monkeypatch):
    """A function that returns the exit code and the checks that fail; `habits` was backed up today."""
    asked(habits)
    monkeypatch.setattr(audit_log, "_now", lambda: habits.day.isoformat())
    main_on(f"sqlite:///{habits.path}", "backup", "--out", str(tmp_path / "first.sqlite3"))

    def checked():
        habits.collector.studies.forget()
        capsys.readouterr()
        code = exit_code(["status", "--health", "--json", "--collector", URL])
        checks = json.loads(capsys.readouterr().out)
        assert {check["name"] for check in checks} >= {"backup", "keys", "disk", "studies", "exports"}
        return code, [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]

    return checked


def test_healthy_collector_has_a_line_for_each_subject(checked, capsys):
    assert checked() == (0, [])
    assert exit_code(["status", "--health", "--collector", URL]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [state for state, *_ in lines] == ["ok"] * 6
    assert [name for _, name, _ in lines] == ["backup", "keys", "disk", "studies", "exports", "certificate"]


def test_old_backup_needs_action(habits, checked):
    habits.day += timedelta(health.BACKUP_DAYS + 1)
    assert checked() == (1, ["backup: the last one is 8 days old: let a timer run `ldpkit backup`"])


def test_collector_that_was_never_backed_up_needs_action(asked, empty, capsys):
    asked(empty)
    assert exit_code(["status", "--health", "--collector", URL]) == 1
    assert "ACT\tbackup\tnone was made by `ldpkit backup`" in capsys.readouterr().out


def test_key_before_its_last_day_needs_action(habits, checked):
    for name, days in (("soon", 3), ("later", 100)):
        habits.write(add_key, name, Role.READ, None, habits.day + timedelta(days))
    code, (line,) = checked()
    assert code == 1
    assert line.startswith("keys: soon expires on ")


def test_disk_without_room_for_the_upkeep_needs_action(habits, checked, monkeypatch):
    usage = shutil.disk_usage(habits.path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=1000))
    code, (line,) = checked()
    assert code == 1
    assert line.startswith("disk: 0.0 GB free")


def test_study_that_is_open_after_its_last_day_needs_action(habits, checked, make_study):
    habits.publish(make_study(id="other", closes=habits.day.isoformat()))
    # Late reports are taken for some days.
    habits.day += timedelta(7)
    assert checked() == (0, [])
    habits.day += timedelta(1)
    code, lines = checked()
    assert code == 1
    assert any(line.startswith("studies: other ended on ") for line in lines)
    habits.close("other")
    assert not any(line.startswith("studies") for line in checked()[1])


def test_export_from_before_a_withdrawal_needs_action_until_the_next(habits, checked, study, make_report):
    reports = [make_report(study) for _ in range(3)]
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


def test_last_export_is_of_the_last_day(habits):
    for day, detail in (("2026-01-02", "5 withdrawn before"), ("2026-01-03", "1 withdrawn before")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(audit_log, "_now", lambda day=day: day)
            habits.write(audit_log.record, "ann", audit_log.EXPORT, "habits", detail)
    assert habits.write(audit_log.last_exports) == {"habits": ("2026-01-03", 1)}
