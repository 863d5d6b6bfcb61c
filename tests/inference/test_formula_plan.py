"""Plans of formulas: widths match theory and fits, probabilities add up, invalid options are rejected."""

from __future__ import annotations

import json
import re
import shlex
from math import exp, log
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from benchmarks.formula_plans import STUDY
from inference.design.formula_plan import HALF, plan_formula
from inference.design.possible_reports import possible_of_design, possible_of_study

from inference.analyses.design_file import read_design
from ldp_client import mechanism_for
from ldpkit.cli import main
from schemas import Study
from summaries.people.codebook import read_census
from tests import studies

GUIDE = (Path(__file__).parents[2] / "docs" / "surveys.md").read_text(encoding="utf-8")
PUBLIC = [{"id": "region", "choices": ["north", "south"]}, {"id": "age", "bounds": ["18", "99"], "step": "1"}]


@pytest.mark.slow
def test_width_of_log_odds_matches_theory():
    """A share π has sd √(m (1 − m) / n) / (p − q) / (π (1 − π)), m = q + (p − q) π."""
    mechanism = mechanism_for(STUDY.question("ever"))
    p, q = float(mechanism.p), float(mechanism.q)
    m = q + (p - q) * 0.2
    sd = np.sqrt(m * (1 - m) / 500) / (p - q) / (0.2 * 0.8)
    formula, options = "ever ~ region", {"shares": {"ever": 0.2}, "priors": "flat"}
    possible = possible_of_study(STUDY, formula, None)
    found = plan_formula(
        possible, formula, [1500], **options, width=HALF * sd, effects={"region[south]": 1e-9}
    )
    assert found.half_widths["Intercept"] == pytest.approx(HALF * sd)
    assert found.half_widths["region[south]"] == pytest.approx(HALF * sd * np.sqrt(2))
    people = {"Intercept": 1500, "region[south]": 3000, "region[west]": 3000}
    assert found.needed == pytest.approx(people, abs=1)
    assert found.truth["Intercept"] == pytest.approx(log(0.25))
    # Nothing is found of no effect but by chance: half of the 10 %.
    assert found.power["region[south]"] == pytest.approx([0.05], rel=1e-3)
    odds = found.to_document()["odds_ratios"]["region[south]"]
    assert odds["high"] == pytest.approx([exp(HALF * sd * np.sqrt(2))])


@pytest.mark.parametrize("name", ["randomized_response", "oue", "olh", "hadamard"])
def test_possible_reports_have_probabilities_of_mechanism(name):
    """They add up to 1, and the largest ratio between two answers is e^ε."""
    question = {**studies.CHOICE, "mechanism": {"name": name, "epsilon": "1.5"}}
    study = Study(studies.document(question, public=PUBLIC))
    private = possible_of_study(study, f"{question['id']} ~ region", None).table.private[question["id"]]
    vectors = private.choices.vectors[0, :-1]
    assert vectors.sum(axis=0) == pytest.approx(1)
    ratios = vectors[:, :, None] / vectors[:, None, :]
    assert log(ratios.max()) == pytest.approx(1.5, abs=1e-5)


@pytest.mark.slow
def test_census_counts_equal_repeated_rows(tmp_path):
    """A row with `count` 3 equals three rows; an older survey's column of the outcome is ignored."""
    design = read_design(
        '{"format": "ldpkit.design/1", "columns": {"armed": {"design": "warner", "p": "0.8"}}}'
    )
    (tmp_path / "rows.csv").write_text("sex,armed\nf,1\nm,0\nm,1\nm,1\n")
    (tmp_path / "census.csv").write_text("sex,count\nf,1\nm,3\n")
    widths = []
    for name in ("rows", "census"):
        possible = possible_of_design(design, "armed ~ sex", read_census(str(tmp_path / f"{name}.csv")))
        widths.append(plan_formula(possible, "armed ~ sex", [100]).half_widths["sex[m]"])
        shares = possible.table.counts.reshape(2, -1)[:, 0]
        assert shares[1] == 3 * shares[0]
    assert widths[0] == pytest.approx(widths[1])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--share evr=0.2", 3, "--share evr: shares are of the answers to ever"),
        ("--share ever=1.2", 3, r"the shares of ever \(yes 1.2\) must be between 0 and 1"),
        ("--share ever=0.2,ever[yes]=0.3", 3, "was stated twice"),
        ("--truth south=1", 3, "'south' is no parameter of the formula"),
        ("--truth Intercept=1 --share ever=0.2", 3, "the share of ever follows from the coefficients"),
        ("--question ever", 2, "--question is not for --formula"),
    ],
)
def test_invalid_options_are_rejected_before_writing(tmp_path, capsys, options, code, said):
    (tmp_path / "study.json").write_text(Study(studies.document(studies.YES_NO, public=PUBLIC)).to_json())
    out = tmp_path / "out"
    command = ["plan", str(tmp_path / "study.json"), "--formula", "ever ~ age", "--out", str(out)]
    assert main([*command, *options.split()]) == code
    assert re.search(said, capsys.readouterr().err)
    assert not out.exists()


def section(title):
    return GUIDE.split(f"## {title}\n")[1].split("\n## ")[0]


def planned(command, tmp_path, capsys):
    """What a plan of the guide prints, and its only question's numbers."""
    assert main(shlex.split(command)) == 0
    (entry,) = json.loads((tmp_path / "plan" / "plan.json").read_text())["questions"].values()
    rmtree(tmp_path / "plan")
    return capsys.readouterr().out, entry


@pytest.mark.slow
def test_plans_in_guide_print_stated_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.M | re.S)
    exec(compile(program, "survey.py", "exec"), {})
    design, *_ = re.findall(r"^```json\n(.*?)^```", section("A survey done with dice"), flags=re.M | re.S)
    (tmp_path / "design.json").write_text(design)
    (tmp_path / "study.json").write_text(Study(studies.document(studies.YES_NO, public=PUBLIC)).to_json())
    of_dice, of_study = re.findall(r"^ldpkit (plan .*)$", section("How many people?"), flags=re.M)
    printed, entry = planned(of_dice, tmp_path, capsys)
    assert f"{entry['half_widths']['married'][1]:.2f}" in GUIDE
    assert (
        f"{entry['odds_ratios']['married']['high'][1] / entry['odds_ratios']['married']['value']:.2f}"
        in GUIDE
    )
    (for_width,) = re.findall(r"± 0.3 of married: about ([\d,]+) people", printed)
    (for_power,) = re.findall(r"with power 0.9: about ([\d,]+) people", printed)
    said = " ".join(section("How many people?").split())
    assert f"that {for_width} give ± 0.3" in said
    assert f"that {for_power} find" in said
    printed, _ = planned(of_study, tmp_path, capsys)
    assert "each as likely" in printed
