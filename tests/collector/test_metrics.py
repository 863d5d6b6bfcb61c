"""The counts that Prometheus reads."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from collector.metrics import Metrics
from collector.settings import METRICS_FOLDER
from tests.collector.conftest import ANSWERS, REPOSITORY


def samples(harness):
    response = harness.client.get("/metrics", headers=harness.operator)
    assert response.status_code == 200
    lines = [line for line in response.text.splitlines() if not line.startswith("#")]
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


def test_refusals_are_counted_by_reason(habits, study, make_report):
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
    assert rejected(habits) == {
        "malformed-json": 1,
        "media-type-unsupported": 1,
        "study-unknown": 2,
        "study-closed": 1,
    }


def test_metrics_contain_no_time_report_id_or_answer(habits, study, make_report):
    report = make_report(study)
    habits.put(report)
    text = habits.client.get("/metrics", headers=habits.operator).text
    assert "_created" not in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"le", "reason", "route", "study"}
    assert not any(word in text for word in (report.id, *ANSWERS))


@pytest.mark.slow
def test_several_workers_are_added_up(start_server, study, make_report):
    server = start_server("--workers", "2", "--threads", "2")
    server.request("POST", "/v1/studies", study.document)
    for _ in range(30):
        assert server.put(make_report(study)) == 201
    for _ in range(10):
        assert "ldpkit_reports_accepted_total 30.0" in server.read("/metrics")


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
    text = Metrics().render().decode()
    assert "ldpkit_reports_accepted_total 7.0" in text
    assert "ldpkit_queue_reports 500" not in text


def test_unpublished_study_id_is_not_a_label(habits, make_study, make_report):
    """Otherwise a sender of invented study ids could fill memory with labels."""
    for sent in (
        make_report(make_study(id="invented")),
        make_report(make_study(id="habits"), digest="0" * 64),
    ):
        assert habits.put(sent).status_code in (404, 422)
    habits.client.put("/v1/studies/drawn/reports/x", data=b"{", content_type="application/json")
    text = habits.client.get("/metrics", headers=habits.operator).text
    assert set(re.findall(r'study="([^"]*)"', text)) == {"habits"}
