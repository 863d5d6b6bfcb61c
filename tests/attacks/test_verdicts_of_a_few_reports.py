"""Fit a formula to one report, or to six: nothing can be compared with the law, and the verdict says so.

Defence: The analysis: with too few reports it says that nothing was checked, and it calls no set of fewer
than thirty impossible.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.checking import FEW
from inference.analyses.noise_bounds import FEWEST, impossible
from inference.analyses.table import Table, table_of
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.channels import known_channel

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


def said(codes: list[int]) -> Table:
    """Reports of no and yes, from people of twenty and more."""
    frame = pd.DataFrame({"age": 20.0 + np.arange(len(codes))})
    return table_of(frame, [known_channel("armed", ("no", "yes"), codes, FORCED)])


@pytest.mark.parametrize("codes", [[0], [1], [0, 1], [1] * 6, [0] * (FEWEST - 1)])
def test_a_few_reports_are_never_called_impossible(codes: list[int]) -> None:
    analysis = assemble(said(codes), "armed ~ 1")
    assert impossible(analysis.privates, analysis.cells) == ()


def test_many_impossible_reports_are_flagged() -> None:
    analysis = assemble(said([1] * 100), "armed ~ 1")
    (reason,) = impossible(analysis.privates, analysis.cells)
    assert "reports of armed are implausible" in reason


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["armed ~ 1", "age ~ armed"])
def test_model_of_too_few_reports_is_not_checked(formula: str) -> None:
    found = analyse_table(said([0, 1]), formula, method="gaussian_approx", draws=200)
    assert found.predictive is None
    assert found.verdict.fit.state == "not checked"
    assert found.verdict.fit.reasons == (FEW,)


@pytest.mark.slow
def test_fit_of_one_report_writes_folder(tmp_path: Path) -> None:
    study = tmp_path / "study.json"
    study.write_text(Study(studies.document(studies.YES_NO)).to_json())
    answers, reports, out = (tmp_path / name for name in ("answers.csv", "reports.ndjson", "out"))
    answers.write_text("ever\nyes\n")
    assert main(["perturb", str(study), str(answers), "--out", str(reports)]) == 0
    fit = [
        "fit",
        str(study),
        str(reports),
        "--formula",
        "ever ~ 1",
        "--method",
        "gaussian_approx",
        "--out",
        str(out),
    ]
    assert main([*fit, "-q"]) == 4
    model = json.loads((out / "posterior.json").read_text())["questions"]["ever"]["verdict"]["fit"]
    assert model == {"state": "not checked", "reasons": [FEW]}
    assert FEW[1:] in (out / "report.html").read_text()
