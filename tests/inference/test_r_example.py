"""examples/read_results.R reads a fit's files if R is installed; the files have the fields it needs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from ldpkit.cli import main
from schemas import Report
from tests import studies
from tests.collector.conftest import TOKEN, Server

SCRIPT = Path(__file__).parents[2] / "examples" / "read_results.R"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a posterior, and the decoded export of its reports."""
    folder = tmp_path_factory.mktemp("for_r")
    study = folder / "study.json"
    study.write_text(json.dumps(studies.document(studies.YES_NO, studies.CHOICE)))
    (folder / "answers.csv").write_text("ever,occupation\n" + "yes,worker\nno,worker\n" * 60)
    reports = str(folder / "reports.ndjson")
    assert main(["perturb", str(study), str(folder / "answers.csv"), "--out", reports, "--quiet"]) == 0
    assert main(["fit", str(study), reports, "--out", str(folder / "posterior"), "--quiet"]) in (0, 4)
    server = Server(folder)
    try:
        server.request("POST", "/v1/studies", json.loads(study.read_text()))
        for line in Path(reports).read_text().splitlines()[:3]:
            server.put(Report.from_json(line))
        export = ["export", "survey", "--collector", server.url, "--token", TOKEN, "--decoded", "--quiet"]
        assert main([*export, "--out", str(folder / "reports.csv")]) == 0
    finally:
        server.kill()
    return folder


def test_files_have_the_fields_that_the_r_script_reads(made):
    found = json.loads((made / "posterior" / "posterior.json").read_text())["questions"]
    for question in found.values():
        assert {"model", "n", "ok", "reasons"} <= set(question)
    with h5py.File(made / "posterior" / "occupation.nc") as file:
        draws = file["posterior/p"]
        assert draws.shape[2] == len(file["posterior/choice"])
    columns = (made / "reports.csv").read_text().splitlines()[0].split(",")
    assert {"report_id", "day", "noisy.ever", "unbiased.ever"} <= set(columns)


@pytest.mark.needs("R")
def test_r_script_fails_on_failed_calibration_and_skips_blanks(made, tmp_path):
    """A calibration that failed, and an export whose reports answer one question of several."""
    shutil.copytree(made / "posterior", tmp_path / "posterior")
    result = json.loads((made / "posterior" / "posterior.json").read_text())
    said = {"question": "ever", "what": "calibration", "state": "bad", "says": "its ranks leave the band"}
    result["earlier"] = {"ok": False, "says": [said]}
    (tmp_path / "posterior" / "posterior.json").write_text(json.dumps(result))
    (tmp_path / "reports.csv").write_text("report_id,unbiased.ever\na,0.5\nb,\nc,1.5\n")
    command = ["Rscript", str(SCRIPT), str(tmp_path / "posterior"), str(tmp_path / "reports.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "done before: its ranks leave the band" in done.stdout
    assert "unbiased.ever: mean 1, standard error 0.5\n" in done.stdout


@pytest.mark.needs("R")
def test_r_script_prints_same_quantiles_and_exits_by_verdict(made):
    command = ["Rscript", str(SCRIPT), str(made / "posterior"), str(made / "reports.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads((made / "posterior" / "posterior.json").read_text())["questions"]
    assert done.returncode == (0 if all(one["ok"] for one in found.values()) else 4), done.stderr
    printed = {
        name: [float(one) for one in numbers.split()]
        for name, numbers in re.findall(r"^(p\S*)\s+([\d. ]+)$", done.stdout, re.MULTILINE)
    }
    for question in found.values():
        for name, row in question["parameters"].items():
            assert printed[name] == pytest.approx([row["q05"], row["q50"], row["q95"]], abs=1e-3), name
    assert "3 reports with columns report_id, study" in done.stdout
    assert re.search(r"unbiased\.ever: mean -?[\d.]+, standard error [\d.]+", done.stdout)
    assert np.isfinite(list(printed.values())).all()
