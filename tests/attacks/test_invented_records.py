"""Invent records on paper to move a result, enter one twice, or ask with dice that hide nothing."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from inference.analyses.arms import arms_of
from inference.analyses.paper import table_of_arms
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.commands.paper import sheet_name
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies

GOLDEN = Path(__file__).parents[1] / "golden" / "studies" / "paper.json"
PEOPLE = 900


@pytest.fixture
def study():
    return Study.from_json(GOLDEN.read_text(encoding="utf-8"))


def sheet(path, said):
    with path.open("w", newline="") as file:
        name = sheet_name(Study.from_json(GOLDEN.read_text(encoding="utf-8")))
        rows = [[number, name, "north", 40, one, "A"] for number, one in enumerate(said, 1)]
        csv.writer(file).writerows([["record", "sheet", "region", "age", "ever", "occupation"], *rows])
    return str(path)


def test_invented_records_disagree_with_the_devices(study, tmp_path):
    """A third of both says yes; an interviewer fills 600 more records in with yes, as no die was rolled."""
    random, mechanisms = np.random.default_rng(1), mechanisms_of(study)
    answers = {"region": "north", "age": 40, "occupation": "worker"}
    reports = [
        perturb_answers(study, mechanisms, {**answers, "ever": person % 3 == 0}) for person in range(PEOPLE)
    ]
    dice = random.integers(1, 7, PEOPLE)
    said = ["yes" if die == 1 or (die != 6 and person % 3 == 0) else "no" for person, die in enumerate(dice)]
    path = sheet(tmp_path / "entry.csv", [*said, *["yes"] * 600])
    table = table_of_arms(study, reports, path, ["ever"])
    _, reasons, _ = arms_of(table, table.private["ever"])
    # Nine standard errors apart, where 3.3 are told.
    assert "disagree on ever" in reasons[0]


def test_a_record_counts_once(study, tmp_path):
    path = Path(sheet(tmp_path / "entry.csv", ["yes", "no"]))
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    with pytest.raises(InputError, match="record 1 was entered twice"):
        table_of_arms(study, None, str(path), ["ever"])


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([["1", "0"], ["0", "1"]], "rule an answer out"),
        ([["9999/10000", "1/10000"], ["1/10000", "9999/10000"]], "hardly any privacy"),
        ([["5/6", "1/6"], ["1/6", "5/6"]], ""),
    ],
)
def test_dice_that_hide_nothing_are_warned_of(matrix, said, tmp_path, capsys):
    one = {"id": "ever", "instructions": "Tell.", "matrix": matrix}
    (tmp_path / "study.json").write_text(
        json.dumps(studies.document(studies.YES_NO, paper={"questions": [one]}))
    )
    assert main(["study", "check", str(tmp_path / "study.json")]) == 0
    warned = capsys.readouterr().err
    assert ("warning: ever on paper" in warned) == bool(said)
    assert said in warned
