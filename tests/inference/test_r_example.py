"""examples/read_results.R reads a fit's files, prints its quantiles and ends by its verdict."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ldpkit.cli import main
from tests import studies

SCRIPT = Path(__file__).parents[2] / "examples" / "read_results.R"
pytestmark = [pytest.mark.needs("R"), pytest.mark.slow]


def test_r_script_prints_quantiles_and_fails_on_failed_calibration(tmp_path):
    """Of the reports in an export some answer another question."""
    study, answers, reports, out = (tmp_path / name for name in ("s.json", "a.csv", "r.ndjson", "fit"))
    study.write_text(json.dumps(studies.document(studies.YES_NO)))
    answers.write_text("ever\n" + "yes\nno\n" * 200)
    assert main(["perturb", str(study), str(answers), "--out", str(reports)]) == 0
    call = ["fit", str(study), str(reports), "--out", str(out), "--method", "gaussian_approx"]
    assert main(call) in (0, 4)
    result = json.loads((out / "posterior.json").read_text())
    said = {"question": "ever", "what": "calibration", "state": "bad", "says": "its ranks leave the band"}
    (out / "posterior.json").write_text(json.dumps({**result, "earlier": {"ok": False, "says": [said]}}))
    (tmp_path / "reports.csv").write_text("report_id,unbiased.ever\na,0.5\nb,\nc,1.5\n")
    command = ["Rscript", str(SCRIPT), str(out), str(tmp_path / "reports.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "done before: its ranks leave the band" in done.stdout
    assert "unbiased.ever: mean 1, standard error 0.5\n" in done.stdout
    (numbers,) = re.findall(r"^p\s+([\d. ]+)$", done.stdout, re.MULTILINE)
    row = result["questions"]["ever"]["parameters"]["p"]
    assert [float(one) for one in numbers.split()] == pytest.approx(
        [row["q05"], row["q50"], row["q95"]], abs=1e-3
    )
