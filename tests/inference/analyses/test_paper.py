"""A study that is also asked on paper: instructions, the sheet, and a fit of its records.

Defence: `ldpkit check` warns of such dice. Known limit: invented records, one entered twice, and a
column entered the wrong way round.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from schemas.paper_sheet import paper_lines, sheet_columns, sheet_name, write_sheet
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parents[2] / "golden" / "studies" / "paper.json"
GUIDE = Path(__file__).parents[3] / "docs" / "surveys.md"
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


def test_filled_in_sheet_is_fitted_as_table_with_design(study, tmp_path, monkeypatch, capsys):
    """The sheet comes from the command; rows left blank are left out."""
    monkeypatch.chdir(tmp_path)
    Path("study.json").write_text(study.to_json())
    assert main(["check", "study.json", "--sheet", "entry.csv", "--records", "320"]) == 0
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
    fit = ["fit", "--table", "entry.csv", "--design", "design.json", "--formula", "ever ~ region"]
    assert main([*fit, "--missing", "drop", "--method", "gaussian_approx", "--out", "out"]) == 0
    entry = json.loads(Path("out/posterior.json").read_text())["questions"]["ever"]
    assert entry["n"] == 300
    share = entry["quantities"]["share ever = yes"]
    assert abs(share["mean"] - 0.3) < 4 * share["sd"] < 0.3


@pytest.mark.parametrize("command", ["check", "publish --token key --collector http://127.0.0.1:9"])
@pytest.mark.parametrize("name", ["record", "sheet"])
def test_field_named_like_a_sheet_column_is_rejected(name, command, tmp_path, capsys):
    """It is rejected before publication, since no sheet could hold it afterwards."""
    text = GOLDEN.read_text(encoding="utf-8").replace('"region"', f'"{name}"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    first, *options = command.split(" --")
    options = [part for option in options for part in f"--{option}".split()]
    assert main([*first.split(), str(tmp_path / "study.json"), *options]) == 3
    assert f"its own column {name}" in capsys.readouterr().err


def test_question_not_on_paper_may_have_a_column_name():
    """The sheet has only the questions asked on paper."""
    document = studies.document(studies.YES_NO, {**studies.CHOICE, "id": "sheet"}, paper=DICE)
    assert sheet_columns(Study(document)) == ["record", "sheet", "ever"]


def test_field_named_wave_causes_a_warning(tmp_path, capsys, monkeypatch):
    """It is only a warning, as one version alone can be fitted."""
    monkeypatch.setattr("collector.remote.client.backoff", lambda _failed: 0)
    text = GOLDEN.read_text(encoding="utf-8").replace('"region"', '"wave"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert "cannot be fitted together as waves" in capsys.readouterr().err
    assert main(
        ["publish", str(tmp_path / "study.json"), "--token", "key", "--collector", "http://127.0.0.1:9"]
    )
    assert "cannot be fitted together as waves" in capsys.readouterr().err


def test_paper_lines_state_joint_epsilon_of_all_questions(study):
    """Ratios of 5 and 4 multiply to 20 for a reader of both answers."""
    said = paper_lines(study)
    ratios = [one.ratio for one in study.paper.questions]
    assert "all 2 questions on paper together: epsilon " in said[-2]
    assert f"at most {float(ratios[0] * ratios[1]):.3g} times" in said[-1]
    one = Study(studies.document(studies.YES_NO, paper=DICE))
    assert "together" not in "".join(paper_lines(one))


@pytest.mark.parametrize(
    ("ever", "told", "warned"),
    [
        ([["1/2", "1/2"], ["0", "1"]], "no epsilon bounds what is learnt", "ever on paper: some outcomes"),
        (
            [["999/1000", "1/1000"], ["1/1000", "999/1000"]],
            "epsilon 8.294 (",
            "all questions together on paper: epsilon 8.294",
        ),
    ],
)
def test_weak_dice_of_all_questions_cause_a_warning(ever, told, warned):
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["paper"]["questions"][0]["matrix"] = ever
    study = Study(document)
    assert told in "\n".join(paper_lines(study))
    assert [line for line in warnings_of(study) if "on paper" in line] == [
        line for line in warnings_of(study) if warned in line
    ]


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


def test_dice_that_rule_out_an_answer_have_no_bound(capsys, tmp_path):
    """`check` warns of it before the study starts."""
    one = {"id": "ever", "instructions": "Tell.", "matrix": [["1/2", "1/2"], ["0", "1"]]}
    document = studies.document(studies.YES_NO, paper={"questions": [one]})
    assert Study(document).paper.questions[0].ratio is None
    (tmp_path / "study.json").write_text(json.dumps(document))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert "rules an answer out" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([["1", "0"], ["0", "1"]], "rule an answer out"),
        ([["9999/10000", "1/10000"], ["1/10000", "9999/10000"]], "hardly any privacy"),
        ([["5/6", "1/6"], ["1/6", "5/6"]], ""),
    ],
)
def test_dice_that_hide_nothing_cause_a_warning(matrix, said, tmp_path, capsys):
    one = {"id": "ever", "instructions": "Tell.", "matrix": matrix}
    (tmp_path / "study.json").write_text(
        json.dumps(studies.document(studies.YES_NO, paper={"questions": [one]}))
    )
    assert main(["check", str(tmp_path / "study.json")]) == 0
    warned = capsys.readouterr().err
    assert ("warning: ever on paper" in warned) == bool(said)
    assert said in warned
