"""The alert rules and the dashboard: their metrics exist, and a Prometheus takes every expression."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from datetime import timedelta

import pytest
import yaml

from tests.collector.conftest import REPOSITORY, TOKEN

FILES = REPOSITORY / "docs" / "monitoring"
WAIT_SECONDS = 30
LABELS = {"study", "reason", "route", "le"}


def alerts():
    groups = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def panels():
    dashboard = json.loads((FILES / "grafana.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


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
    text = busy.client.get("/metrics", headers=busy.operator).text
    names = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert missing(alerts() + panels(), names) == set()
    assert missing(["sum by (stduy) (ldpkit_quue_reports)"], names) == {"stduy", "ldpkit_quue_reports"}
    for line in ('ldpkit_study_days_left{study="other"} 6.0',
                 'ldpkit_study_open{study="habits"} 1.0', "ldpkit_database_up 1.0",
                 'ldpkit_request_seconds_count{route="reports.put"} 3.0'):  # fmt: skip
        assert line in text


def test_metrics_report_an_unavailable_database(habits, monkeypatch):
    from sqlalchemy.exc import OperationalError

    def away(*_arguments, **_options):
        raise OperationalError("", {}, Exception("gone"))

    monkeypatch.setattr(habits.collector.database, "read", away)
    text = habits.client.get("/metrics", headers=habits.operator).text
    assert "ldpkit_database_up 0.0" in text
    assert "ldpkit_study_reports{" not in text


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


def ruled(*series):
    """What `promtool test rules` needs of each series: (name with labels, values)."""
    return [{"series": name, "values": values} for name, values in series]


SILENT = {"alertname": "LdpkitStudySilent"}
TOLD = [{"exp_labels": {"severity": "info", "study": "a"},
         "exp_annotations": {"summary": "No report of a came for three days"}}]  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs("prometheus")
@pytest.mark.parametrize(
    ("minutes", "told", "reports", "opened", "machines"),
    [
        (70, [], "5x200", "1x200", 1),  # known for an hour
        (5000, TOLD, "5x9000", "1x9000", 1),
        (5000, TOLD, "5x9000", "1x9000", 2),
        (5000, [], "5+0x4000 6x5000", "1x9000", 1),
        (5120, [], "0x9000", "0x4999 1x4000", 1),  # its first day, or opened again, for two hours
        (5120, [], "0x9000", "0x4999 1x4000", 2),
        (9200, [], "0x9999", "0x4999 1x4999", 1),  # open for 4,200 minutes of 4,320
        (9500, TOLD, "0x9999", "0x4999 1x4999", 1),
        (9500, [], "0x9999", "1x4999 0x4999", 1),  # closed
    ],
)
def test_silent_study_alert_fires_after_three_open_days(tmp_path, minutes, told, reports, opened, machines):
    series = [
        one
        for machine in range(machines)
        for one in (
            (f'ldpkit_study_open{{study="a",instance="{machine}"}}', opened),
            (f'ldpkit_study_reports{{study="a",instance="{machine}"}}', reports),
        )
    ]
    case = {
        "interval": "1m",
        "input_series": ruled(*series),
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


@pytest.mark.slow
@pytest.mark.needs("prometheus")
def test_prometheus_evaluates_every_expression(start_server, study, make_report, tmp_path, port):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    assert server.put(make_report(study)) == 201
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FILES / "alerts.yml")],
        "scrape_configs": [{"job_name": "ldpkit", "authorization": {"credentials": TOKEN},
                            "static_configs": [{"targets": [urllib.parse.urlsplit(server.url).netloc]}]}],
    }))  # fmt: skip
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml",
               f"--storage.tsdb.path={tmp_path}/data",
               f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as prometheus,
    ):
        try:
            value = until(lambda: ask(port, 'ldpkit_study_reports{study="habits"}'))
            assert value[0]["value"][1] == "1"
            for expression in alerts() + [one.replace("$study", ".*") for one in panels()]:
                ask(port, expression)
            rules = until(lambda: evaluated(port))
            assert {rule["health"] for rule in rules} == {"ok"}
        finally:
            prometheus.terminate()


def ask(port, expression):
    """Return the value of an expression now. Raises if Prometheus rejects it."""
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=10) as response:
        found = json.load(response)
    assert found["status"] == "success"
    return found["data"]["result"]


def evaluated(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/rules", timeout=10) as response:
        (group,) = json.load(response)["data"]["groups"]
    return [] if any(rule["health"] == "unknown" for rule in group["rules"]) else group["rules"]


def until(look):
    """Return the first result of `look` that is not empty."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("nothing came")
