"""A study that is also asked on paper: instructions, the sheet, one posterior, arms that disagree."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.arms import arms_of
from inference.analyses.drawn_together import Clusters
from inference.analyses.joining import joined
from inference.analyses.paper import load_entries, table_of_arms
from inference.analyses.population import Population
from inference.analyses.table import Looks, Private, Table, known_channel, table_of
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.commands.paper import paper_lines, sheet_columns, sheet_name, write_sheet
from ldp_client.commands.study_warnings import warnings_of
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parents[2] / "golden" / "studies" / "paper.json"
GUIDE = Path(__file__).parents[3] / "docs" / "surveys.md"
DICE = {"questions": [{"id": "ever", "instructions": "Roll.", "matrix": [["5/6", "1/6"], ["1/6", "5/6"]]}]}
HEADER = ["record", "sheet", "region", "age", "ever", "occupation"]


@pytest.fixture
def study():
    return Study.from_json(GOLDEN.read_text(encoding="utf-8"))


def entered(path, rows, header=HEADER, sheet=None):
    """A sheet of rows without their second column, which is the golden study's."""
    sheet = sheet or sheet_name(Study.from_json(GOLDEN.read_text(encoding="utf-8")))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *[[row[0], sheet, *row[1:]] for row in rows]])
    return str(path)


def devices(study, n, share, random):
    mechanisms, source = mechanisms_of(study), NotForRealAnswers(random.bytes)
    found = []
    for person in range(n):
        answers = {"region": ("north", "south")[person % 2], "age": int(random.integers(18, 100))}
        answers["occupation"] = "worker"
        answers["ever"] = bool(random.random() < share)
        found.append(perturb_answers(study, mechanisms, answers, source))
    return found


def papers(n, share, random):
    """Rows of the sheet: the die is rolled as the study says."""
    for record in range(1, n + 1):
        die, truth = random.integers(1, 7), random.random() < share
        ever = "yes" if die == 1 or (die != 6 and truth) else "no"
        yield [
            record,
            ("north", "south")[record % 2],
            random.integers(18, 100),
            ever,
            "ABC"[random.integers(3)],
        ]


def test_a_record_says_what_the_studys_matrix_says(study, tmp_path):
    """Beside devices: each row keeps the channel of its own arm."""
    rows = [[1, "north", "20", "yes", "A"], [2, "south", "21.0", "no", "C"], [3, "", "", "", ""]]
    path = entered(tmp_path / "entry.csv", rows)
    names = ["ever", "occupation", "region"]
    entries = load_entries(study, path, names)
    assert entries.n == 2
    ever, job = entries.private["ever"], entries.private["occupation"]
    assert ever.vectors[ever.codes] == pytest.approx(np.asarray([[1 / 6, 5 / 6], [5 / 6, 1 / 6]]))
    assert job.vectors[job.codes] == pytest.approx(np.asarray([[4, 1, 1], [1, 1, 4]]) / 6)
    assert list(entries.public["age"]) == [20, 21]
    both = table_of_arms(study, devices(study, 4, 0.5, np.random.default_rng(1)), path, names)
    assert both.n == 6
    assert list(both.public["arm"][-2:]) == ["paper", "paper"]
    whole = both.private["ever"]
    assert np.array_equal(whole.vectors[whole.codes[-2:]], ever.vectors[ever.codes])
    assert both.digest == entries.digest == study.digest


@pytest.mark.slow
def test_from_the_sheet_to_one_posterior(study, tmp_path, monkeypatch, capsys):
    """The command's sheet, filled in, beside devices of which three times as many say yes."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    Path("study.json").write_text(study.to_json())
    assert main(["paper", "study.json", "--sheet", "entry.csv", "--records", "3"]) == 0
    said = capsys.readouterr().out
    assert "At 1 say yes, at 6 say no" in said
    assert "at most 5 times as likely" in said
    assert Path("entry.csv").read_text().splitlines()[:2] == [",".join(HEADER), f"1,{sheet_name(study)},,,,"]
    assert main(["paper", "study.json", "--sheet", "entry.csv"]) == 3
    entered(tmp_path / "entry.csv", papers(900, 0.3, random))
    fit = ["fit", "study.json", "r.ndjson", "--paper", "entry.csv", "--formula", "ever ~ region", "--out"]
    reports = devices(study, 900, 0.9, random)
    Path("r.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
    # Written, and not to be trusted.
    assert main([*fit, "out", "--method", "laplace"]) == 4
    entry = json.loads(Path("out/posterior.json").read_text())["questions"]["ever"]
    assert entry["n"] == 1800
    moved = entry["quantities"]["share ever = yes, arm: paper − device"]
    assert abs(moved["mean"] + 0.6) < 5 * moved["sd"] < 0.5
    assert any("disagree" in line for line in entry["verdict"]["model"]["reasons"])
    assert "Devices and paper disagree on ever" in Path("out/report.html").read_text()


def arms(shift, seed, n=400):
    """Two arms of other dice; on paper `shift` more say yes."""
    random = np.random.default_rng(seed)
    tables = {}
    for arm, matrix, share in (
        ("device", [[0.7, 0.3], [0.3, 0.7]], 0.4),
        ("paper", [[5 / 6, 1 / 6], [1 / 6, 5 / 6]], 0.4 + shift),
    ):
        answers = (random.random(n) < share).astype(int)
        said = (random.random(n) < np.asarray(matrix)[answers, 1]).astype(int)
        tables[arm] = table_of(
            pd.DataFrame(index=range(n)), [known_channel("q", ["no", "yes"], said, matrix)]
        )
    return joined(tables, "arm")


@pytest.mark.slow
def test_arms_that_agree_are_hardly_ever_called_apart():
    """Once in a thousand by chance; 35 points apart, nearly always."""
    called = [bool(arms_of(table, table.private["q"])[1]) for table in (arms(0, seed) for seed in range(200))]
    assert sum(called) <= 2
    missed = [not arms_of(table, table.private["q"])[1] for table in (arms(0.35, seed) for seed in range(40))]
    assert sum(missed) <= 8


def arms_of_clinics(seed, shift=0.0, crossed=False, clinics=8, n=1200):
    """As `arms`, where each clinic has a share of its own; each is of one arm, or has people of both."""
    random = np.random.default_rng(seed)
    shares = np.clip(random.normal(0.4, 0.15, 2 * clinics), 0.05, 0.95)
    tables = {}
    for place, arm in enumerate(("device", "paper")):
        own = random.integers(clinics, size=n) + (0 if crossed else place * clinics)
        answers = (random.random(n) < shares[own] + shift * place).astype(int)
        said = (random.random(n) < np.where(answers, 0.8, 0.2)).astype(int)
        matrix = [[0.8, 0.2], [0.2, 0.8]]
        rows = pd.DataFrame({"clinic": [f"c{one}" for one in own]})
        tables[arm] = table_of(rows, [known_channel("q", ["no", "yes"], said, matrix)])
    return joined(tables, "arm")


def called_apart(table):
    clusters = Clusters.of_sample(Population(cluster="clinic").sampled(table))
    return bool(arms_of(table, table.private["q"], clusters=clusters)[1])


@pytest.mark.slow
@pytest.mark.parametrize("crossed", [False, True])
def test_arms_of_different_clinics_are_not_called_apart_for_that(crossed):
    """People of a clinic are alike: with 8 clinics an arm, shares differ by a few points by chance."""
    tables = [arms_of_clinics(seed, crossed=crossed) for seed in range(60)]
    assert sum(called_apart(table) for table in tables) <= 1
    if not crossed:
        # As if people had been drawn one by one, agreeing arms would be called apart again and again.
        assert sum(bool(arms_of(table, table.private["q"])[1]) for table in tables) > 6


def test_in_clinics_of_both_arms_a_difference_shows_in_spite_of_them():
    """What a clinic's people have in common takes nothing from it: both arms have it."""
    tables = [arms_of_clinics(seed, 0.25, crossed=True, clinics=20) for seed in range(10)]
    assert sum(called_apart(table) for table in tables) >= 8


def test_arms_of_a_clinic_each_are_said_not_to_be_held():
    table = arms_of_clinics(1, clinics=1)
    clusters = Clusters.of_sample(Population(cluster="clinic").sampled(table))
    quantities, reasons, (note,) = arms_of(table, table.private["q"], clusters=clusters)
    assert (quantities, reasons) == ([], ())
    assert note.startswith(
        "devices and paper were not held against each other: the table has one clinic alone"
    )


@pytest.mark.slow
def test_an_analysis_of_clusters_holds_its_arms_by_them():
    table = next(t for t in map(arms_of_clinics, range(60)) if arms_of(t, t.private["q"])[1])
    fast = {"method": "laplace", "population": Population(cluster="clinic")}
    assert not disagree(analyse_table(table, "q ~ 1", **fast))
    assert disagree(analyse_table(table, "q ~ 1", method="laplace"))


def disagree(found):
    return any("devices and paper disagree" in reason for reason in found.verdict.model.reasons)


def test_a_design_file_takes_the_place_of_the_studys(study, tmp_path):
    """One in ten of those who did it denies it."""
    from inference.analyses.design_file import read_design

    denied = {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"], "denial": "0.1"}
    design = read_design(json.dumps({"format": "ldpkit.design/1", "columns": {"ever": denied}}))
    path = entered(tmp_path / "entry.csv", [[1, "north", "20", "yes", "A"]])
    ever = load_entries(study, path, ["ever"], design=design).private["ever"]
    assert ever.vectors[ever.codes][0, 1] == pytest.approx(0.9 * 5 / 6 + 0.1 / 6)


GOOD = [1, "north", "20", "yes", "A"]
WRONG = {
    "record 1 was entered twice": [GOOD, GOOD],
    "no number in record": [["", "north", "20", "yes", "A"]],
    "record 1: region": [[1, "North", "20", "yes", "A"]],
    "record 1: age": [[1, "north", "17", "yes", "A"]],
    "'maybe' is no report": [[1, "north", "20", "maybe", "A"]],
    "'worker' is no report": [[1, "north", "20", "yes", "worker"]],
    "blank cells": [[2, "north", "20", "", "A"], GOOD],
    "no record is filled in": [[1, "", "", "", ""]],
}


@pytest.mark.parametrize("said", WRONG)
def test_a_sheet_that_is_wrong_is_refused_with_its_record(said, study, tmp_path):
    path = entered(tmp_path / "entry.csv", WRONG[said])
    with pytest.raises(InputError, match=said) as error:
        load_entries(study, path, ["ever", "occupation", "region"])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (HEADER[:-1], ("table.unknown_column", "occupation")),
        ([*HEADER[:-1], "job"], ("table.unknown_column", "occupation")),
    ],
)
def test_a_sheet_of_other_columns_is_refused(header, said, study, tmp_path):
    path = entered(tmp_path / "entry.csv", [GOOD[: len(header) - 1]], header)
    with raises(InputError, said):
        load_entries(study, path, ["ever"])


@pytest.mark.parametrize("change", ["dice", "version", "blank", "one record"])
def test_records_of_other_dice_are_refused(change, study, tmp_path):
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if change == "dice":
        document["paper"]["questions"][0]["matrix"] = [["2/3", "1/3"], ["1/3", "2/3"]]
    if change == "version":
        document["version"] = study.version + 1
    path = tmp_path / "entry.csv"
    entered(path, [GOOD, [2, *GOOD[1:]]], sheet=" " if change == "blank" else sheet_name(Study(document)))
    if change == "one record":
        path.write_text(path.read_text().replace(f"2,{sheet_name(study)}", "2,other 1 000000000000"))
    with raises(InputError, "paper.other_sheet", "sheet"):
        load_entries(study, str(path), ["ever"])


@pytest.mark.parametrize("command", ["study check", "paper", "publish --token key --to http://127.0.0.1:9"])
@pytest.mark.parametrize("named", ["record", "sheet", "arm", "arm, asked"])
def test_what_has_a_columns_name_is_refused_before_it_is_asked(named, command, tmp_path, capsys):
    """Once it is published, no fit would read its records."""
    name, _, asked = named.partition(", ")
    text = GOLDEN.read_text(encoding="utf-8").replace('"ever"' if asked else '"region"', f'"{name}"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    first, *options = command.split(" --")
    options = [part for option in options for part in f"--{option}".split()]
    assert main([*first.split(), str(tmp_path / "study.json"), *options]) == 3
    assert f"column {name} of its own" in capsys.readouterr().err


def test_a_question_that_no_record_has_is_refused_for_the_fits_column_alone(tmp_path):
    """Of both ways to answer the arms are told apart, on the sheet stands what is asked on paper."""
    document = studies.document(studies.YES_NO, {**studies.CHOICE, "id": "sheet"}, paper=DICE)
    assert sheet_columns(Study(document)) == ["record", "sheet", "ever"]
    document["questions"][1]["id"] = "arm"
    with raises(InputError, "paper.taken", "arm"):
        write_sheet(Study(document), str(tmp_path / "entry.csv"), 3)


def test_a_field_of_the_waves_name_is_warned_of(tmp_path, capsys, monkeypatch):
    """One version by itself can be fitted."""
    monkeypatch.setattr("collector.remote.client.backoff", lambda _failed: 0)
    text = GOLDEN.read_text(encoding="utf-8").replace('"region"', '"wave"')
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    assert main(["study", "check", str(tmp_path / "study.json")]) == 0
    assert "cannot be fitted together as waves" in capsys.readouterr().err
    assert main(["publish", str(tmp_path / "study.json"), "--token", "key", "--to", "http://127.0.0.1:9"])
    assert "cannot be fitted together as waves" in capsys.readouterr().err


def test_the_dice_of_all_questions_are_told_together(study):
    """5 times as likely for one and 4 for the other: 20 for who knows both."""
    said = paper_lines(study)
    ratios = [one.ratio for one in study.paper.questions]
    assert "all 2 questions on paper together: epsilon " in said[-2]
    assert f"at most {float(ratios[0] * ratios[1]):.3g} times" in said[-1]
    one = Study(studies.document(studies.YES_NO, paper=DICE))
    assert "together" not in "".join(paper_lines(one))


@pytest.mark.parametrize(
    ("ever", "told", "warned"),
    [
        ([["1/2", "1/2"], ["0", "1"]], "no epsilon bounds what is learnt", "ever on paper: its dice rule"),
        (
            [["999/1000", "1/1000"], ["1/1000", "999/1000"]],
            "epsilon 8.294 (",
            "all questions together on paper: epsilon 8.294",
        ),
    ],
)
def test_dice_that_hide_hardly_anything_together_are_said(ever, told, warned):
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["paper"]["questions"][0]["matrix"] = ever
    study = Study(document)
    assert told in "\n".join(paper_lines(study))
    assert [line for line in warnings_of(study) if "on paper" in line] == [
        line for line in warnings_of(study) if warned in line
    ]


def test_a_study_without_paper_has_no_sheet(tmp_path):
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "paper.none"):
        load_entries(study, entered(tmp_path / "entry.csv", [GOOD]), ["ever"])


def test_the_guides_paper_mode_is_a_good_one():
    (text,) = [
        part.split("```")[0]
        for part in GUIDE.read_text(encoding="utf-8").split("```json\n")[1:]
        if '"paper"' in part
    ]
    study = Study(studies.document(studies.YES_NO, **json.loads(text)))
    assert study.paper is not None
    assert float(study.paper.questions[0].ratio) == 5


def test_dice_that_rule_an_answer_out_have_no_bound(capsys, tmp_path):
    """`study check` says so before anybody is asked."""
    one = {"id": "ever", "instructions": "Tell.", "matrix": [["1/2", "1/2"], ["0", "1"]]}
    document = studies.document(studies.YES_NO, paper={"questions": [one]})
    assert Study(document).paper.questions[0].ratio is None
    (tmp_path / "study.json").write_text(json.dumps(document))
    assert main(["study", "check", str(tmp_path / "study.json")]) == 0
    assert "rules an answer out" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("dice", [[[5 / 6, 1 / 6], [1 / 6, 5 / 6]], [[1, 0], [1 / 6, 5 / 6]]], ids=str)
@pytest.mark.parametrize("records", [10, 20, 40])
def test_few_records_of_a_rare_trait_are_not_called_apart(dice, records):
    """Of 2,000 surveys with 2,000 devices two are expected at most, and more than six once in 200."""
    random, devices, runs = np.random.default_rng(1), [[0.88, 0.12], [0.12, 0.88]], 2000
    said = [
        random.binomial(n, 0.97 * one[0][1] + 0.03 * one[1][1], runs)
        for n, one in ((2000, devices), (records, dice))
    ]
    looks = Looks(np.tile(np.eye(2), (2, 1)), np.repeat([0, 1], 2), np.asarray([devices, dice]))
    vectors = np.vstack([np.asarray(devices).T, np.asarray(dice).T])
    column = Private("q", ("no", "yes"), np.arange(4), vectors, looks=looks)
    public = pd.DataFrame({"arm": ["device", "device", "paper", "paper"]})
    apart = 0
    for (yes, on_paper), often in zip(
        *np.unique(np.transpose(said), axis=0, return_counts=True), strict=True
    ):
        counts = np.asarray([2000 - yes, yes, records - on_paper, on_paper])
        apart += often * bool(arms_of(Table(public, {"q": column}, counts), column)[1])
    assert apart <= 6


def test_what_a_box_of_a_list_asks_is_read_out():
    """The list's title is the question, and a section's that of one without words: "Aspirin" alone was."""
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
