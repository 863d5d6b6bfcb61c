"""A study that is also asked on paper: instructions, the sheet, and a table of its records."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from inference.analyses.survey import DROP, load_survey
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from schemas.paper_sheet import paper_lines, sheet_columns, sheet_name, write_sheet
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parents[1] / "golden" / "studies" / "paper.json"
GUIDE = Path(__file__).parents[2] / "docs" / "surveys.md"
DICE = {"questions": [{"id": "ever", "instructions": "Roll.", "matrix": [["5/6", "1/6"], ["1/6", "5/6"]]}]}
HEADER = ["record", "sheet", "region", "age", "ever", "occupation"]


@pytest.fixture
def study():
    return Study.from_json(GOLDEN.read_text(encoding="utf-8"))


def papers(n, share, random):
    """Rows of the sheet: the die is rolled as the study says."""
    for record in range(1, n + 1):
        die, truth = random.integers(1, 7), random.random() < share
        ever = "yes" if die == 1 or (die != 6 and truth) else "no"
        yield [("north", "south")[record % 2], random.integers(18, 100), ever, "ABC"[random.integers(3)]]


def test_filled_in_sheet_is_read_as_table_with_design(study, tmp_path, monkeypatch, capsys):
    """The sheet comes from the command; rows left blank are left out."""
    monkeypatch.chdir(tmp_path)
    Path("study.json").write_text(study.to_json())
    assert main(["check", "study.json", "--sheet", "entry.csv", "--n", "320"]) == 0
    said = capsys.readouterr().out
    assert "At 1 say yes, at 6 say no" in said
    assert "at most 5 times as likely" in said
    head, *rows = Path("entry.csv").read_text().splitlines()
    assert [head, rows[0]] == [",".join(HEADER), f"1,{sheet_name(study)},,,,"]
    assert main(["check", "study.json", "--sheet", "entry.csv"]) == 3
    filled = papers(300, 0.3, np.random.default_rng(2))
    known = [[*row.split(",")[:2], *next(filled, [""] * 4)] for row in rows]
    with Path("entry.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *known])
    dice = {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]}
    Path("design.json").write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"ever": dice}}))
    table, _ = load_survey("entry.csv", "design.json", "ever ~ region", DROP)
    assert table.n == 300
    # 1/6 are forced to say yes, and 2/3 tell the truth.
    share = (np.mean(table.private["ever"].codes) - 1 / 6) * 1.5
    assert abs(share - 0.3) < 5 * 1.5 * 0.5 / np.sqrt(300)


@pytest.mark.parametrize("name", ["record", "sheet"])
def test_field_named_like_a_sheet_column_is_rejected(name, tmp_path, capsys):
    """It is rejected before publication, since no sheet could hold it afterwards."""
    text = GOLDEN.read_text(encoding="utf-8").replace('"region"', f'"{name}"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    for command in (["check"], ["publish", "--collector", "http://127.0.0.1:9"]):
        assert main([*command, str(tmp_path / "study.json")]) == 3
        assert f"its own column {name}" in capsys.readouterr().err


def test_question_not_on_paper_may_have_a_column_name():
    """The sheet has only the questions asked on paper."""
    document = studies.document(studies.YES_NO, {**studies.CHOICE, "id": "sheet"}, paper=DICE)
    assert sheet_columns(Study(document)) == ["record", "sheet", "ever"]


def test_field_named_wave_causes_a_warning(tmp_path, capsys):
    """It is only a warning, as one version alone can be fitted."""
    text = GOLDEN.read_text(encoding="utf-8").replace('"region"', '"wave"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert "called wave" in capsys.readouterr().err


def test_paper_lines_state_joint_epsilon_of_all_questions(study):
    """Ratios of 5 and 4 multiply to 20 for a reader of both answers."""
    said = paper_lines(study)
    ratios = [one.ratio for one in study.paper.questions]
    assert "all 2 questions on paper together: epsilon " in said[-2]
    assert f"at most {float(ratios[0] * ratios[1]):.3g} times" in said[-1]
    one = Study(studies.document(studies.YES_NO, paper=DICE))
    assert "together" not in "".join(paper_lines(one))


def test_writing_sheet_of_study_without_paper_is_rejected(tmp_path):
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "paper.none"):
        write_sheet(study, str(tmp_path / "entry.csv"), 3)


def test_paper_mode_in_guide_is_valid():
    (text,) = [
        part.split("```")[0]
        for part in GUIDE.read_text(encoding="utf-8").split("```json\n")[1:]
        if '"paper"' in part
    ]
    study = Study(studies.document(studies.YES_NO, **json.loads(text)))
    assert study.paper is not None
    assert float(study.paper.questions[0].ratio) == 5


def test_paper_lines_include_list_and_section_titles():
    """A box is printed with its list's title, and a question without text by its section's title."""
    wordless = {name: value for name, value in studies.YES_NO.items() if name != "text"}
    boxes = [{**studies.YES_NO, "id": "ever", "text": "Aspirin"}, {**wordless, "id": "bare"}]
    sections = [
        {"title": "Which do you take?", "questions": ["ever"], "any_of": True},
        {"title": "Do you smoke?", "questions": ["bare"]},
    ]
    bare = {**DICE["questions"][0], "id": "bare"}
    document = studies.document(*boxes, sections=sections, paper={"questions": [*DICE["questions"], bare]})
    said = paper_lines(Study(document))
    assert any("Which do you take? Aspirin" in line for line in said)
    assert any("bare: Do you smoke?" in line for line in said)


@pytest.mark.attack(2)
@pytest.mark.parametrize(
    ("matrix", "told", "warned"),
    [
        ([["1", "0"], ["0", "1"]], "no epsilon bounds what is learnt", "rule an answer out"),
        ([["9999/10000", "1/10000"], ["1/10000", "9999/10000"]], "epsilon 10.", "hardly any privacy"),
        ([["5/6", "1/6"], ["1/6", "5/6"]], "epsilon 2.", ""),
    ],
)
def test_dice_that_hide_nothing_cause_a_warning(matrix, told, warned):
    """Dice of a study on paper may give answers away; `check` says so before anybody is asked."""
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["paper"]["questions"][0]["matrix"] = matrix
    study = Study(document)
    assert told in "\n".join(paper_lines(study))
    found = [line for line in warnings_of(study) if "ever on paper" in line]
    assert bool(found) == bool(warned)
    assert all(warned in line for line in found)
