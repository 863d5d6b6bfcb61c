"""An operator's view: checks with a line for each subject, counts for Prometheus, alerts, a dashboard."""

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from unittest.mock import Mock

import pytest
import yaml

from collector import audit_log, status
from collector.keys import Role, add_key
from collector.metrics import Metrics
from collector.settings import METRICS_FOLDER
from tests.kit.answers import AwayError
from tests.kit.collectors import REPOSITORY, build_report, build_study
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


def test_refusals_are_counted_by_reason(habits, study):
    """A sender of invented study ids could fill memory with labels: none but those of studies are."""
    report = build_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    habits.client.put(path, data=b"{", content_type="application/json")
    habits.client.put(path, data=b"{}", content_type="text/plain")
    habits.client.post("/v1/studies/nosuch/reports", json={"reports": [report.to_document()] * 2})
    habits.client.post("/v1/studies/nosuch/reports", json={"reports": []})
    habits.withdraw(report.id)
    habits.close()
    habits.put(report)
    habits.client.get("/nothing")
    assert habits.put(build_report(build_study(id="invented"))).status_code == 404
    habits.client.put("/v1/studies/drawn/reports/x", data=b"{", content_type="application/json")
    rejected = re.findall(r'ldpkit_reports_rejected_total\{reason="(.*)"\} (\d+)', habits.metrics())
    assert dict(rejected) == {
        "malformed-json": "1",
        "parameter-invalid": "1",
        "media-type-unsupported": "1",
        "study-unknown": "3",
        "study-closed": "1",
    }
    assert set(re.findall(r'study="([^"]*)"', habits.metrics())) == {"habits"}


KILLED = """
import os, signal
from collector.metrics import Metrics
metrics = Metrics()
metrics.count(7, 0)
metrics.observe_commit(0.001, 500)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
def test_killed_worker_loses_no_counts(tmp_path, monkeypatch):
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    subprocess.run([sys.executable, "-c", KILLED], cwd=REPOSITORY, check=False)
    assert list(tmp_path.glob("gauge_live*.db"))
    # What a worker leaves that is killed as it starts.
    (tmp_path / "counter_1.db").write_bytes(b"")
    text = Metrics().render().decode()
    assert "ldpkit_reports_accepted_total 7.0" in text
    assert "ldpkit_queue_reports 500" not in text
    # Another user's process has the number now.
    monkeypatch.setattr(os, "kill", Mock(side_effect=PermissionError))
    assert Metrics().totals().accepted == 7


FILES = REPOSITORY / "docs" / "monitoring"


def test_rules_and_dashboard_name_metrics_and_labels_that_exist(habits, study):
    habits.publish(build_study(id="other", closes=(habits.day + timedelta(5)).isoformat()))
    report = build_report(study)
    habits.put(report)
    habits.put(report)
    habits.put(build_report(study, digest="0" * 64))
    habits.withdraw(report.id)
    habits.client.get("/metrics", headers={"Authorization": "Bearer wrong"})
    habits.collector.studies.forget()
    text = habits.metrics()
    groups = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"]
    panels = json.loads((FILES / "grafana.json").read_text())["panels"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    expressions = " ".join(rules + [target["expr"] for panel in panels for target in panel["targets"]])
    names = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert set(re.findall(r"\bldpkit_\w+", expressions)) <= names
    labels = ", ".join(re.findall(r"(?:by|on) \(([^)]*)\)", expressions)).split(", ")
    assert set(labels) <= {"study", "reason", "route", "le"}
    for line in ('ldpkit_study_days_left{study="other"} 6.0',
                 'ldpkit_study_open{study="habits"} 1.0', "ldpkit_database_up 1.0",
                 "ldpkit_reports_accepted_total 1.0", "ldpkit_reports_duplicate_total 1.0",
                 'ldpkit_request_seconds_count{route="reports.upload_report"} 3.0'):  # fmt: skip
        assert line in text


def test_read_key_gets_database_down_metric_without_database(habits, monkeypatch):
    """Prometheus sends a read key, which cannot be checked without the database."""
    url, given = "/metrics", {"Authorization": "Bearer a read key"}
    assert habits.client.get(url, headers=given).status_code == 401
    monkeypatch.setattr(habits.collector.database, "read", Mock(side_effect=AwayError))
    answer = habits.client.get(url, headers=given)
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert lines == ["ldpkit_database_up 0.0"]
    assert habits.client.get(url).status_code == 401


@pytest.mark.slow
@pytest.mark.needs("prometheus")
@pytest.mark.parametrize(
    ("minutes", "is_told", "reports", "opened"),
    [
        (70, False, "5x200", "1x200"),  # known for an hour
        (5000, True, "5x9000", "1x9000"),
        (5000, False, "5+0x4000 6x5000", "1x9000"),
        (5120, False, "0x9000", "0x4999 1x4000"),  # its first day, or opened again, for two hours
        (9500, False, "0x9999", "1x4999 0x4999"),  # closed
    ],
)
def test_silent_study_alert_fires_after_three_open_days(tmp_path, minutes, is_told, reports, opened):
    series = [
        {"series": f'ldpkit_study_{name}{{study="a",instance="{machine}"}}', "values": values}
        for machine in "01"
        for name, values in (("open", opened), ("reports", reports))
    ]
    told = {
        "exp_labels": {"severity": "info", "study": "a"},
        "exp_annotations": {"summary": "No report of a came for three days"},
    }
    test = {"eval_time": f"{minutes}m", "alertname": "LdpkitStudySilent", "exp_alerts": [told] * is_told}
    case = {"interval": "1m", "input_series": series, "alert_rule_test": [test]}
    (tmp_path / "case.yml").write_text(
        # The rules look back over days: they are evaluated every ten minutes, not every one.
        json.dumps({"rule_files": [str(FILES / "alerts.yml")], "evaluation_interval": "10m", "tests": [case]})
    )
    command = ["promtool", "test", "rules", tmp_path / "case.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
