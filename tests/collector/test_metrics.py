"""The counts that Prometheus reads, the alert rules and the dashboard."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta

import pytest
import yaml

from collector.metrics import Metrics
from collector.settings import METRICS_FOLDER
from tests.kit.collectors import REPOSITORY


def samples(harness):
    lines = [line for line in harness.metrics().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def rejected(harness):
    pattern = re.compile(r'ldpkit_reports_rejected_total\{reason="(.*)"\}')
    found = {pattern.fullmatch(name): value for name, value in samples(harness).items()}
    return {match[1]: value for match, value in found.items() if match}


def test_reports_are_counted(habits, study, make_report):
    reports = [make_report(study) for _ in range(10)]
    habits.put(reports[0])
    habits.put(reports[0])
    impossible = make_report(study, payloads={**reports[0].payloads, "ever": b"\7"})
    habits.post([report.to_document() for report in [*reports, impossible]])
    found = samples(habits)
    assert found["ldpkit_reports_accepted_total"] == 10
    assert found["ldpkit_reports_duplicate_total"] == 2
    assert rejected(habits) == {"report-invalid": 1}
    assert found["ldpkit_commit_seconds_count"] == 4
    assert found["ldpkit_queue_reports"] == 0


def test_refusals_are_counted_by_reason(habits, study, make_study, make_report):
    """A sender of invented study ids could fill memory with labels: none but those of studies are."""
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    habits.client.put(path, data=b"{", content_type="application/json")
    habits.client.put(path, data=b"{}", content_type="text/plain")
    habits.client.post("/v1/studies/nosuch/reports", json={"reports": [report.to_document()] * 2})
    habits.client.post("/v1/studies/nosuch/reports", json={"reports": []})
    habits.withdraw(report.id)
    habits.close()
    habits.put(report)
    habits.client.get("/nothing")
    assert habits.put(make_report(make_study(id="invented"))).status_code == 404
    habits.client.put("/v1/studies/drawn/reports/x", data=b"{", content_type="application/json")
    assert rejected(habits) == {
        "malformed-json": 1,
        "parameter-invalid": 1,
        "media-type-unsupported": 1,
        "study-unknown": 3,
        "study-closed": 1,
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


def test_killed_worker_loses_no_counts(tmp_path, monkeypatch):
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    subprocess.run([sys.executable, "-c", KILLED], cwd=REPOSITORY, check=False)
    assert list(tmp_path.glob("gauge_live*.db"))
    # What a worker leaves that is killed as it starts.
    (tmp_path / "counter_1.db").write_bytes(b"")
    text = Metrics().render().decode()
    assert "ldpkit_reports_accepted_total 7.0" in text
    assert "ldpkit_queue_reports 500" not in text


def test_number_of_killed_worker_may_be_another_users_process(tmp_path, monkeypatch):
    def kill(_number, _signal):
        raise PermissionError

    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    monkeypatch.setattr(os, "kill", kill)
    (tmp_path / "gauge_livesum_1.db").write_bytes(b"")
    assert Metrics().totals().accepted == 0


FILES = REPOSITORY / "docs" / "monitoring"


def alerts():
    groups = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def panels():
    dashboard = json.loads((FILES / "grafana.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


LABELS = {"study", "reason", "route", "le"}


def missing(expressions, names):
    """List metrics and labels in expressions that the collector does not send."""
    named = {name for one in expressions for name in re.findall(r"\bldpkit_\w+", one)}
    grouped = {
        label.strip()
        for one in expressions
        for group in re.findall(r"(?:by|on) \(([^)]*)\)", one)
        for label in group.split(",")
    }
    return (named - names) | (grouped - LABELS)


@pytest.fixture
def busy(habits, make_study, study, make_report):
    """A collector that has something of everything."""
    habits.publish(make_study(id="other", closes=(habits.day + timedelta(5)).isoformat()))
    report = make_report(study)
    habits.put(report)
    habits.put(report)
    habits.put(make_report(study, digest="0" * 64))
    habits.withdraw(report.id)
    habits.client.get("/metrics", headers={"Authorization": "Bearer wrong"})
    habits.collector.studies.forget()
    return habits


def test_every_metric_that_is_named_exists(busy):
    text = busy.metrics()
    names = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert missing(alerts() + panels(), names) == set()
    assert missing(["sum by (stduy) (ldpkit_quue_reports)"], names) == {"stduy", "ldpkit_quue_reports"}
    for line in ('ldpkit_study_days_left{study="other"} 6.0',
                 'ldpkit_study_open{study="habits"} 1.0', "ldpkit_database_up 1.0",
                 'ldpkit_request_seconds_count{route="reports.upload_report"} 3.0'):  # fmt: skip
        assert line in text


@pytest.mark.parametrize("key", ["a read key", "whatever"])
def test_read_key_gets_database_down_metric_without_database(habits, monkeypatch, key):
    """Prometheus sends a read key, which cannot be checked without the database: it used to get 503."""
    from sqlalchemy.exc import OperationalError

    def away(*_arguments, **_options):
        raise OperationalError("", {}, Exception("gone"))

    url, given = "/metrics", {"Authorization": f"Bearer {key}"}
    assert habits.client.get(url, headers=given).status_code == 401
    monkeypatch.setattr(habits.collector.database, "read", away)
    answer = habits.client.get(url, headers=given)
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert lines == ["ldpkit_database_up 0.0"]
    assert habits.client.get(url).status_code == 401


SILENT = {"alertname": "LdpkitStudySilent"}
TOLD = [{"exp_labels": {"severity": "info", "study": "a"},
         "exp_annotations": {"summary": "No report of a came for three days"}}]  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs("prometheus")
@pytest.mark.parametrize(
    ("minutes", "told", "reports", "opened"),
    [
        (70, [], "5x200", "1x200"),  # known for an hour
        (5000, TOLD, "5x9000", "1x9000"),
        (5000, [], "5+0x4000 6x5000", "1x9000"),
        (5120, [], "0x9000", "0x4999 1x4000"),  # its first day, or opened again, for two hours
        (9500, [], "0x9999", "1x4999 0x4999"),  # closed
    ],
)
def test_silent_study_alert_fires_after_three_open_days(tmp_path, minutes, told, reports, opened):
    values = (("open", opened), ("reports", reports))
    series = [
        {"series": f'ldpkit_study_{name}{{study="a",instance="{machine}"}}', "values": one}
        for machine in "01"
        for name, one in values
    ]
    case = {
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [{"eval_time": f"{minutes}m", **SILENT, "exp_alerts": told}],
    }
    (tmp_path / "case.yml").write_text(
        # The rules look back over days: they are evaluated every ten minutes, not every one.
        json.dumps({"rule_files": [str(FILES / "alerts.yml")], "evaluation_interval": "10m", "tests": [case]})
    )
    command = ["promtool", "test", "rules", tmp_path / "case.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("prometheus")
def test_promtool_accepts_the_alert_rules():
    done = subprocess.run(
        ["promtool", "check", "rules", FILES / "alerts.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
