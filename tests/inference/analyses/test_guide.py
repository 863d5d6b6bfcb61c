"""The guide to analyses: its program runs, its commands print as stated, its names match the code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.design_file import read_design
from inference.analyses.dice import BEHAVIOURS, NAMED
from inference.analyses.survey import survey_of
from inference.laws import LAWS
from ldpkit.cli import main

GUIDE = (Path(__file__).parents[3] / "docs" / "surveys.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [
        text
        for name, text in re.findall(r"^```(\w*)\n(.*?)^```", GUIDE, flags=re.M | re.S)
        if name == language
    ]


STUDY, DESIGN = (
    next(one for one in blocks("json") if kind in one) for kind in ("ldpkit.study", "ldpkit.design")
)


def test_first_study_of_guide_needs_stated_number_of_people(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(STUDY)
    for command in ("check", "plan"):
        line = next(one for one in GUIDE.splitlines() if one.startswith(f"ldpkit {command} study.json"))
        assert main(shlex.split(line)[1:]) == 0
    said = capsys.readouterr().out
    assert "sent with probability 0.88" in said
    assert "at most 88.1 % sure" in said
    assert "± 0.4, clinic[hill]: about 890 people" in said


@pytest.mark.slow
def test_the_dice_survey_of_the_guide_can_be_analysed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})
    (tmp_path / "design.json").write_text(DESIGN)
    lines = [
        line for text in blocks("") for line in text.splitlines() if "survey design.json survey.csv" in line
    ]
    assert len(lines) == 2
    for line in lines[::-1]:
        _, *arguments = shlex.split(line)
        assert main(arguments) == 0
    (entry,) = json.loads((tmp_path / "analysis" / "posterior.json").read_text())["questions"].values()
    # 0.35 against 0.15: an odds ratio of 3.05.
    assert entry["parameters"]["married"]["q05"] < 1.115 < entry["parameters"]["married"]["q95"]


def test_design_in_guide_equals_its_named_form():
    matrix = read_design(DESIGN).columns[0]
    (named,) = re.findall(r"write `(.*?)`:", GUIDE)
    text = f'{{"format": "ldpkit.design/1", "columns": {{{named}}}}}'
    chances = [one.parts[0].channel.chances for one in (read_design(text).columns[0], matrix)]
    assert chances[0] == pytest.approx(chances[1])


def test_design_with_unknown_shares_in_guide_can_be_fitted():
    """Each unknown share has the parameter that its prior names; a mixture's weights have one each."""
    shares, mixture = (json.loads(one) for one in blocks("json") if '"unknown"' in one)
    design = read_design(json.dumps(shares))
    table = survey_of(pd.DataFrame({"armed": ["no", "yes"]}), design)
    assert set(assemble(table, "armed ~ 1", design.priors).opened.priors) == set(design.priors)
    design = read_design(json.dumps({**shares, "columns": {"armed": mixture}}))
    opened = assemble(survey_of(pd.DataFrame({"armed": ["no", "yes"]}), design), "armed ~ 1").opened
    assert list(opened.priors) == [f"armed_weights[{label}]" for label in mixture["mixture"]]


def test_the_guide_names_every_design_and_family():
    for name in (*NAMED, *BEHAVIOURS, *LAWS):
        assert name in GUIDE, name
