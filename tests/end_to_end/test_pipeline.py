"""Study → devices → collector → posterior over HTTP, with the faults that happen on the way."""

import json
import subprocess
import sys

import pytest

from inference import fit, summarize
from ldp_client import Device, Direct
from ldp_client.device.requests import put_report
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.end_to_end.conftest import ldpkit

STUDY = Study(studies.document(studies.YES_NO))

DIES_BEFORE_SENDING = """
import os, sys
from ldp_client import Device, Direct
from ldp_client.device import sending
from schemas import Study
from tests import studies
sending.put_report = lambda *arguments: os._exit(9)
phone = Device(sys.argv[1], "4", sys.argv[2])
study = Study(studies.document(studies.YES_NO))
phone.consent(study)
phone.answer(study, {"ever": True})
phone.flush()
"""


def exported(collector, path):
    done = ldpkit("export", "survey", "--collector", collector.url, "--out", path)
    assert done.returncode == 0, done.stderr
    *lines, _end = path.read_text().splitlines()
    return [Report.from_json(line) for line in lines]


@pytest.mark.slow
def test_a_device_killed_between_commit_and_send_sends_the_same_report_later(collector, tmp_path):
    collector.publish(STUDY)
    folder = tmp_path / "phone"
    command = [sys.executable, "-c", DIES_BEFORE_SENDING, str(folder), collector.url]
    assert subprocess.run(command, check=False).returncode == 9
    assert exported(collector, tmp_path / "before.ndjson") == []
    revived = Device(folder, "4", collector.url)
    (queued,) = revived.ledger.queued()
    assert revived.flush().sent == 1
    assert exported(collector, tmp_path / "after.ndjson") == [Report.from_json(queued.body)]


@pytest.mark.slow
def test_a_lost_acknowledgement_and_a_restart_store_one_report(collector, tmp_path):
    collector.publish(STUDY)
    device = Device(tmp_path / "phone", "4", collector.url)
    device.consent(STUDY)
    report_id = device.answer(STUDY, {"ever": False})
    (queued,) = device.ledger.queued()
    url = f"{collector.url}/v1/studies/survey/reports/{report_id}"
    assert put_report(Direct(), url, queued.body).state == "sent"
    collector.kill()
    assert device.flush(attempts=1).waiting == 1
    collector.start()
    assert device.flush().sent == 1
    assert exported(collector, tmp_path / "reports.ndjson") == [Report.from_json(queued.body)]


@pytest.mark.slow
def test_parquet_and_ndjson_exports_hold_the_same(collector, tmp_path):
    collector.publish(STUDY)
    for number in range(6):
        device = Device(tmp_path / str(number), "4", collector.url)
        device.consent(STUDY)
        device.answer(STUDY, {"ever": number % 3 == 0})
        assert device.flush().sent == 1
    exported(collector, tmp_path / "r.ndjson")
    assert (
        ldpkit("export", "survey", "--collector", collector.url, "--out", tmp_path / "r.parquet").returncode
        == 0
    )
    summaries = {summarize(STUDY, str(tmp_path / name)).to_json() for name in ("r.ndjson", "r.parquet")}
    assert len(summaries) == 1


def test_failed_fit_leaves_no_partial_files(tmp_path, capsys):
    study_file = tmp_path / "study.json"
    study_file.write_text(json.dumps(studies.document(studies.YES_NO)))
    (tmp_path / "bad.ndjson").write_text("nonsense\n")
    assert main(["fit", str(study_file), str(tmp_path / "bad.ndjson"), "--out", str(tmp_path / "fit")]) == 3
    assert "1 of 1 reports" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.ndjson", "study.json"]


@pytest.mark.slow
def test_readme_python_runs_from_study_to_posterior(tmp_path):
    """Runs the ten lines of the README."""
    study = Study(studies.document(studies.YES_NO))
    bodies = []
    for number in range(200):
        device = Device(tmp_path / str(number), max_epsilon="1")
        device.consent(study)
        device.answer(study, {"ever": number < 150})
        bodies.append(device.ledger.queued()[0].body)
    posterior = fit(study, summarize(study, map(Report.from_json, bodies)))["ever"]
    assert 0.4 < posterior.rows()["p"]["q50"] <= 1.0
