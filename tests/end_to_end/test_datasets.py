"""Devices → collector → dataset → summary: what an export writes is what engines read."""

import json
import urllib.request

import pytest

from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from schemas import Study
from summaries import summarize
from tests import studies
from tests.end_to_end.conftest import ldpkit

REGION = {"id": "region", "choices": ["north", "south"]}
STUDY = Study(studies.document(studies.YES_NO, studies.CHOICE, studies.AGE, public=[REGION]))
NEWER = Study(studies.document(studies.YES_NO, studies.CHOICE, studies.AGE, public=[REGION], version=2))


def sent(collector, study, count):
    """Reports that a collector acknowledged, in one batch."""
    mechanisms = mechanisms_of(study)
    answers = {question.id: studies.ANSWERS[question.id] for question in study.questions}
    reports = [
        perturb_answers(study, mechanisms, {**answers, "region": REGION["choices"][number % 2]})
        for number in range(count)
    ]
    body = json.dumps({"reports": [one.to_document() for one in reports]}).encode()
    request = urllib.request.Request(f"{collector.url}/v1/studies/{study.id}/reports", body, method="POST")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 200
    return reports


@pytest.mark.slow
def test_an_exported_dataset_becomes_the_summary_of_its_reports(collector, tmp_path):
    assert collector.publish(STUDY) == 201
    reports = sent(collector, STUDY, 60)
    assert collector.publish(NEWER) == 201
    sent(collector, NEWER, 4)
    study, root, out = (tmp_path / name for name in ("study.json", "dataset", "summary.json"))
    study.write_text(STUDY.to_json())
    exported = ldpkit("export", "survey", "--collector", collector.url, "--out", f"{root}/")
    assert exported.returncode == 0, exported.stderr
    done = ldpkit("summarize", study, root, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == summarize(STUDY, reports).to_json() + "\n"
    assert "4 reports answer other versions of the study (version 2) and were left out" in done.stderr
    # Again, the files named one by one: each report still counts once.
    files = [*root.rglob("*.parquet"), *root.rglob("*.parquet")]
    again = ldpkit("summarize", study, *files, "--out", tmp_path / "again.json")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.json").read_text() == summarize(STUDY, reports).to_json() + "\n"
