"""The guide to analyses: its program runs, its commands print as stated, its names match the code."""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.dice import BEHAVIOURS, NAMED
from inference.analyses.program import assemble
from inference.analyses.survey import survey_of
from inference.laws import LAWS
from ldpkit.cli import main
from tests import studies

GUIDE = (Path(__file__).parents[3] / "docs" / "surveys.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.M | re.S)


DESIGN = next(one for one in blocks("json") if "ldpkit.design" in one)


def test_first_study_of_guide_needs_stated_number_of_people(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(blocks("json")[0])
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
    lines = re.findall(r"^ldpkit (.*survey design.json survey.csv.*)$", GUIDE, flags=re.M)
    assert len(lines) == 2
    for line in lines[::-1]:
        assert main(shlex.split(line)) == 0
    (entry,) = json.loads((tmp_path / "analysis" / "posterior.json").read_text())["questions"].values()
    # 0.35 against 0.15: an odds ratio of 3.05.
    assert entry["parameters"]["married"]["q05"] < 1.115 < entry["parameters"]["married"]["q95"]


def test_design_in_guide_equals_its_named_form():
    (named,) = re.findall(r"write `(.*?)`:", GUIDE)
    text = f'{{"format": "ldpkit.design/1", "columns": {{{named}}}}}'
    first, second = (read_design(one).columns[0].parts[0].channel.chances for one in (text, DESIGN))
    assert first == pytest.approx(second)


def test_design_with_unknown_shares_in_guide_can_be_fitted():
    """Each unknown share has the parameter that its prior names; a mixture's weights have one each."""
    shares, mixture = (json.loads(one) for one in blocks("json") if '"unknown"' in one)
    weights = {f"armed_weights[{label}]" for label in mixture["mixture"]}
    for columns, wanted in ((shares["columns"], None), ({"armed": mixture}, weights)):
        design = read_design(json.dumps({**shares, "columns": columns}))
        table = survey_of(pd.DataFrame({"armed": ["no", "yes"]}), design)
        priors = design.priors if wanted is None else None
        assert set(assemble(table, "armed ~ 1", priors).opened.priors) == (wanted or set(design.priors))


def test_the_guide_names_every_design_and_family():
    assert [name for name in (*NAMED, *BEHAVIOURS, *LAWS) if name not in GUIDE] == []


def test_plans_in_guide_print_stated_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})
    (tmp_path / "design.json").write_text(DESIGN)
    public = [{"id": "region", "choices": ["n", "s"]}, {"id": "age", "bounds": ["18", "99"], "step": "1"}]
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO, public=public)))
    section = GUIDE.split("## How many people?\n")[1].split("\n## ")[0]
    of_dice, of_study = re.findall(r"^ldpkit (plan .*)$", section, flags=re.M)
    assert main(shlex.split(of_dice)) == 0
    printed = capsys.readouterr().out
    said = " ".join(section.split())
    half = re.findall(r"^  married +\S+ +(\S+)", printed, flags=re.M)[0]
    odds = re.findall(r"odds ratio × or ÷ +\S+ +(\S+)", printed)[1]
    (for_width,) = re.findall(r"± 0.3, married: about ([\d,]+) people", printed)
    (for_power,) = re.findall(r"power 0.9, married: about ([\d,]+) people", printed)
    for words in (
        f"± {float(half):.2f}",
        f"by {float(odds):.2f}",
        f"that {for_width} give ± 0.3",
        f"that {for_power} find",
    ):
        assert words in said
    assert main(shlex.split(of_study.replace("--out plan", "--out second"))) == 0
    assert "equally likely" in capsys.readouterr().out
