"""Invent records on paper to move a result, enter one twice, or ask with dice that hide nothing."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.arms import ARM, DEVICE, PAPER, arms_apart, arms_of
from inference.analyses.assembling import assemble
from inference.analyses.crossing import cross_table
from inference.analyses.joining import joined
from inference.analyses.paper import table_of_arms
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import known_channel, table_of
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.commands.paper import sheet_name
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies

GOLDEN = Path(__file__).parents[1] / "golden" / "studies" / "paper.json"
PEOPLE = 900
DICE = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


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


@pytest.fixture(scope="module")
def turned():
    """Devices and paper, whose clerk entered yes of `ever` as no, and no as yes; the rest is right."""
    random = np.random.default_rng(4)
    tables = {}
    for arm in (DEVICE, PAPER):
        ever = random.random(2 * PEOPLE) < 0.25
        job = random.random(2 * PEOPLE) < np.where(ever, 0.8, 0.4)
        entered = ever != (arm == PAPER)
        said = [
            np.where(random.random(2 * PEOPLE) < 2 / 3, one, random.random(2 * PEOPLE) < 0.5)
            for one in (entered, job)
        ]
        names = [
            known_channel(name, ("no", "yes"), one.astype(int), DICE)
            for name, one in zip(("ever", "job"), said)
        ]
        tables[arm] = table_of(pd.DataFrame({"died": random.integers(0, 2, 2 * PEOPLE)}), names)
    return joined(tables, ARM)


@pytest.mark.parametrize("formula", ["job ~ ever", "died ~ ever"])
def test_a_predictor_entered_the_wrong_way_round_disagrees(formula, turned):
    """Of the outcome alone, private or public, nothing is seen."""
    analysis = assemble(turned, formula)
    sites = {name: values[None] for name, values in prior_sites(analysis, 1, 100).items()}
    _, (reason,), _ = arms_apart(analysis, turned, sites)
    assert "disagree on ever" in reason
    assert "name arm in the formula" in reason


def test_a_crossed_question_entered_the_wrong_way_round_disagrees(turned):
    """In the verdict, and not in a note; what to do is what a crossed table has."""
    crossed = cross_table(turned, ["ever", "job"], method="laplace", draws=100)
    (reason,) = [line for line in crossed.diagnostics.verdict.model.reasons if "disagree" in line]
    assert "disagree on ever" in reason
    assert "--by arm" in reason
    assert "formula" not in reason


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
