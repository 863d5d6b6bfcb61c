"""Invent records on paper, enter one twice or in two waves, or ask with dice that hide nothing."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.arms import arms_apart, arms_of, arms_of_all
from inference.analyses.arms_differing import DEVICE, PAPER
from inference.analyses.assembling import assemble
from inference.analyses.crossing import cross_table
from inference.analyses.joining import joined
from inference.analyses.paper import table_of_arms
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import known_channel, table_of
from inference.analyses.waves import table_of_waves
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.commands.paper import ARM, sheet_name
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

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
    _, (reason,), notes = arms_apart(analysis, turned, sites)
    assert "disagree on ever" in reason
    assert "name arm in the formula" in reason
    unseen = "not held against each other in how died goes with ever"
    assert any(unseen in note for note in notes) is formula.startswith("died")


@pytest.mark.slow
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
    with raises(InputError, "paper.duplicate_record", "1"):
        table_of_arms(study, None, str(path), ["ever"])


@pytest.mark.parametrize("how", ["same", "order", "part", "version", "region"])
def test_records_of_one_wave_in_another_are_refused(how, study, tmp_path):
    """In another order, beside others, under another version's name, of another region: dice fall anew."""
    random = np.random.default_rng(2)
    said = random.choice(["yes", "no"], 60)
    one = sheet(tmp_path / "one.csv", said)
    other = Path(sheet(tmp_path / "two.csv", [*said, *(["yes", "no"] * 20 if how == "part" else [])]))
    header, *rows = other.read_text().splitlines()
    later = Study({**study.document, "version": study.version + 1}) if how == "version" else study
    rows = rows[::-1] if how == "order" else rows
    text = "\n".join([header, *rows]).replace(sheet_name(study), sheet_name(later))
    other.write_text(text.replace("north", "south") if how == "region" else text)
    with raises(InputError, "paper.same_records_in_waves", "60"):
        table_of_waves({"a": (study, None, one), "b": (later, None, str(other))}, ["ever"])


def test_the_same_people_with_the_same_numbers_are_two_waves(study, tmp_path):
    """By their dice alone 26 of 36 say the same again, for each of them whatever is true."""
    random, truth = np.random.default_rng(3), np.arange(300) % 3 == 0
    paths = []
    for wave in "ab":
        dice = random.integers(1, 7, 300)
        said = np.where((dice == 1) | ((dice != 6) & truth), "yes", "no")
        paths.append(sheet(tmp_path / f"{wave}.csv", said))
    table = table_of_waves({"a": (study, None, paths[0]), "b": (study, None, paths[1])}, ["ever"])
    assert table.n == 600


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


def shuffled(random, shares=(0.8, 0.4)):
    """Two yes/no questions of devices and of paper, whose records' `job` went to other people's records."""
    tables = {}
    for arm in (DEVICE, PAPER):
        ever = random.random(2 * PEOPLE) < 0.35
        job = random.random(2 * PEOPLE) < np.where(ever, *shares)
        if arm == PAPER:
            job = random.permutation(job)
        dice = [random.random(2 * PEOPLE) for _ in "ab"]
        said = [np.where(die < 2 / 3, one, die < 5 / 6) for die, one in zip(dice, (ever, job))]
        names = [
            known_channel(name, ("no", "yes"), one.astype(int), DICE)
            for name, one in zip(("ever", "job"), said)
        ]
        tables[arm] = table_of(pd.DataFrame(index=range(2 * PEOPLE)), names)
    return joined(tables, ARM)


def test_a_column_entered_beside_others_records_disagrees():
    """Each question alone says what devices say; what goes with what does not."""
    table = shuffled(np.random.default_rng(6))
    _, (reason,), _ = arms_of_all(table, list(table.private.values()))
    assert "disagree on how ever and job go together" in reason


@pytest.mark.slow
def test_what_the_fit_explains_is_no_disagreement():
    """Where paper was answered by others, as a public column says, what goes with what differs too."""
    random, tables = np.random.default_rng(8), {}
    for arm, old in ((DEVICE, 0.2), (PAPER, 0.8)):
        age = random.random(2 * PEOPLE) < old
        ever, job = (random.random(2 * PEOPLE) < np.where(age, 0.9, 0.1) for _ in "ab")
        dice = [random.random(2 * PEOPLE) for _ in "ab"]
        said = [np.where(die < 2 / 3, one, die < 5 / 6) for die, one in zip(dice, (ever, job))]
        names = [
            known_channel(name, ("no", "yes"), one.astype(int), DICE)
            for name, one in zip(("ever", "job"), said)
        ]
        tables[arm] = table_of(pd.DataFrame({"age": np.where(age, "old", "young")}), names)
    table = joined(tables, ARM)
    found = analyse_table(table, "job ~ ever + age", method="laplace", draws=100)
    assert not [line for line in found.diagnostics.verdict.model.reasons if "disagree" in line]
    crossed = arms_of_all(table, list(table.private.values()))
    assert crossed[1]


@pytest.mark.slow
def test_arms_that_agree_are_seldom_called_apart():
    """No dependence to lose: of 60 surveys at 1 in 1,000 more than 3 come once in 2 million."""
    random = np.random.default_rng(7)
    tables = [shuffled(random, (0.5, 0.5)) for _ in range(60)]
    found = [arms_of_all(table, list(table.private.values()))[1] for table in tables]
    assert sum(map(bool, found)) <= 3
