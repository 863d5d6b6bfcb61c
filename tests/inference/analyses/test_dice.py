"""Surveys done with dice: designs are read, expanded and fitted; invalid ones are rejected."""

from __future__ import annotations

import csv
import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.design_file import read_design
from inference.analyses.survey import load_survey
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.kit.errors import raises

FORCED = {"answers": ["no", "yes"], "reports": ["0", "1"], "matrix": [["5/6", "1/6"], ["1/6", "5/6"]]}
# P(report 1) at a share π of yes, by the papers' own formulas.
PAPERS = {
    "warner": ({"p": "0.7"}, lambda share: 0.7 * share + 0.3 * (1 - share)),
    "disguised": ({"p": "0.8"}, lambda share: 0.8 * share + 0.2 * (1 - share)),
    "forced": ({"yes": "1/6", "no": "1/12"}, lambda share: 1 / 6 + 0.75 * share),
    "unrelated": ({"p": "0.6", "prevalence": "0.25"}, lambda share: 0.6 * share + 0.4 * 0.25),
    "crosswise": ({"p": "0.18"}, lambda share: 0.18 * share + 0.82 * (1 - share)),
    "triangular": ({"p": "0.25"}, lambda share: share + (1 - share) * 0.25),
    "kuk": ({"yes": "0.8", "no": "0.3"}, lambda share: 0.8 * share + 0.3 * (1 - share)),
    "mangat": ({"p": "0.7"}, lambda share: share + (1 - share) * 0.3),
}


def document(column: dict) -> str:
    return json.dumps({"format": "ldpkit.design/1", "columns": {"q": column}})


@pytest.mark.parametrize("name", PAPERS)
def test_named_design_matches_its_paper(name):
    numbers, of = PAPERS[name]
    (column,) = read_design(document({"design": name, **numbers})).columns
    no, yes = column.parts[0].channel.matrix
    for share in (0.0, 0.3, 1.0):
        assert float(no[1]) * (1 - share) + float(yes[1]) * share == pytest.approx(of(share), abs=1e-15)
    assert sum(no) == sum(yes) == 1


def test_unknown_share_of_design_enters_linearly():
    """Lie detector: t π + (1 − p)(1 − π). Unrelated: p π + (1 − p) prevalence."""
    share = 0.3
    for name, p, unknown, wanted in (
        ("stochastic_lie_detector", "0.7", 0.4, 0.4 * share + 0.3 * (1 - share)),
        ("unrelated", "0.6", 0.2, 0.6 * share + 0.4 * 0.2),
    ):
        (column,) = read_design(document({"design": name, "p": p})).columns
        ((_, moved),) = column.parts[0].channel.unknown.items()
        no, yes = (
            float(row[1]) + unknown * float(by[1])
            for row, by in zip(column.parts[0].channel.matrix, moved, strict=True)
        )
        assert no * (1 - share) + yes * share == pytest.approx(wanted, abs=1e-15)


def test_kuk_cards_are_binomial_and_cheaters_say_no():
    (kuk,) = read_design(document({"design": "kuk", "yes": "0.8", "no": "0.3", "cards": "3"})).columns
    assert kuk.reports == ("0", "1", "2", "3")
    assert kuk.parts[0].channel.matrix[1][3] == Fraction(4, 5) ** 3
    (cheaters,) = read_design(document({"design": "cheater_detection", "p": "0.2"})).columns
    assert cheaters.answers == ("no", "yes", "cheater")
    assert cheaters.parts[0].channel.matrix[2] == (1, 0)


def test_stated_denial_and_random_answers_change_the_matrix():
    (denied,) = read_design(document({**FORCED, "denial": "0.1"})).columns
    assert denied.parts[0].channel.matrix[1][1] == Fraction(9, 10) * Fraction(5, 6) + Fraction(1, 60)
    (random,) = read_design(document({**FORCED, "random": "0.5"})).columns
    assert random.parts[0].channel.matrix[0][1] == Fraction(1, 2) * Fraction(1, 6) + Fraction(1, 4)
    (unknown,) = read_design(document({**FORCED, "denial": "unknown"})).columns
    assert set(unknown.parts[0].channel.unknown) == {"denial"}


BAD = [
    ({**FORCED, "matrix": [[0.5, 0.5], [0.1, 0.9]]}, ("design.number_not_in_quotes", "matrix")),
    ({**FORCED, "matrix": [["0.5", "0.4"], ["0.1", "0.9"]]}, ("design.row_sum_not_one", "'no'", "0.9")),
    ({**FORCED, "matrix": [["0.5", "0.5"], ["0.5", "0.5"]]}, "design.all_rows_equal"),
    ({**FORCED, "answers": ["a", "b", "c"]}, ("design.wrong_row_count", "2", "3")),
    ({**FORCED, "reports": ["1", "1"]}, ("design.duplicate_label", "reports")),
    ({"design": "warners", "p": "0.5"}, ("design.unknown_design", "'warners'")),
    ({"design": "warner"}, ("design.missing_member", "warner", "'p'")),
    ({"design": "warner", "p": "1.2"}, ("design.not_probability", "q: p ")),
    ({"design": "forced", "yes": "0.6", "no": "0.6"}, "design.yes_and_no_above_one"),
    ({**FORCED, "row": {}}, ("design.unknown_member", "'row'")),
    ({"matrices": [{"design": "warner", "p": "0.7"}]}, "design.matrix_without_rows"),
    (
        {"design": "kuk", "yes": "0.8", "no": "0.3", "cards": "2.5"},
        ("design.cards_out_of_range", "cards", "100"),
    ),
]


@pytest.mark.parametrize(("column", "code"), BAD)
def test_invalid_design_is_rejected(column, code):
    with raises(InputError, code):
        read_design(document(column))


def write(path: Path, rows: list[dict]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def survey(n: int = 1500, seed: int = 4) -> list[dict]:
    """Forced response: 0.3 of the young and 0.5 of the old say yes."""
    random = np.random.default_rng(seed)
    old = random.integers(0, 2, n)
    yes = random.random(n) < np.where(old, 0.5, 0.3)
    said = np.where(random.random(n) < 2 / 3, yes, random.random(n) < 0.5)
    return [{"q": f"{int(a)}.0", "old": int(b), "note": ""} for a, b in zip(said, old, strict=True)]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "design.json").write_text(document(FORCED))
    return write(tmp_path / "survey.csv", survey()), str(tmp_path / "design.json"), tmp_path


@pytest.mark.slow
def test_fit_of_a_table_writes_the_usual_files(files, capsys):
    """A blank column that the formula does not name is ignored, and 1.0 is read as report 1."""
    table, design, folder = files
    arguments = [
        "fit",
        "--table",
        table,
        "--design",
        design,
        "--formula",
        "q ~ old",
        "--out",
        str(folder / "out"),
    ]
    assert main(arguments) == 0
    assert "answer yes: report 0 1/6, 1 5/6" in capsys.readouterr().out
    names = {path.name for path in (folder / "out").iterdir()}
    tables = {"report.md", "tables.csv", "tables.tex"}
    assert names == {"posterior.json", "report.html", "q.nc", "q.png", "q-chains.png", *tables}
    entry = json.loads((folder / "out" / "posterior.json").read_text())["questions"]["q"]
    assert set(entry["parameters"]) == {"Intercept", "old"}
    assert "share of q = yes" in (folder / "out" / "report.html").read_text().lower()
    # Another table does not replace this one.
    other = write(folder / "other.csv", survey(seed=5))
    assert main(["fit", "--table", other, *arguments[3:]]) == 3


REFUSED = {
    "row 3": lambda rows: rows[2].update(q="7"),
    "blank cells": lambda rows: rows[1].update(q=""),
    "no column 'old'": lambda rows: [row.pop("old") for row in rows],
    "are collinear": lambda rows: [row.update(twice=row["old"]) for row in rows],
}


@pytest.mark.parametrize("said", REFUSED)
def test_unsuitable_table_is_rejected_and_nothing_is_written(said, files, capsys):
    _, design, folder = files
    rows = survey(100)
    REFUSED[said](rows)
    table = write(folder / "bad.csv", rows)
    formula = "q ~ old + twice" if said == "are collinear" else "q ~ old"
    assert (
        main(["fit", "--table", table, "--design", design, "--formula", formula, "--out", str(folder / "o")])
        == 3
    )
    assert said in capsys.readouterr().err
    assert not (folder / "o").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["--formula", "q ~ 1"],
        ["--table", "survey.csv"],
        ["--table", "survey.csv", "--formula", "q ~ 1"],
        ["study.json", "--table", "survey.csv", "--design", "design.json", "--formula", "q ~ 1"],
        ["--table", "survey.csv", "--design", "design.json", "--formula", "q ~ 1", "--missing", "maybe"],
        ["--table", "survey.csv", "--design", "design.json", "--formula", "q ~ 1", "--prior", "old=flat"],
        ["--table", "survey.csv", "--design", "design.json", "--formula", "q ~ 1", "--method", "fast"],
        [],
    ],
)
def test_incomplete_command_is_rejected(given, files, monkeypatch):
    monkeypatch.chdir(files[2])
    try:
        code = main(["fit", *given, "--out", "o"])
    except SystemExit as end:
        code = end.code
    assert code == (3 if "--prior" in given else 2)  # The table has to be read to know the names.
    assert not Path("o").exists()


@pytest.mark.parametrize(("open_one", "noted"), [(True, False), (False, True)])
def test_labels_are_checked_only_against_known_matrices(open_one, noted):
    """The lie detector's matrix depends on an unknown t, so its labels cannot look swapped."""
    turned = {"answers": ["no", "yes"], "reports": ["no", "yes"], "matrix": [["0.2", "0.8"], ["0.8", "0.2"]]}
    column = {
        "design": "stochastic_lie_detector",
        "p": "0.7",
        "answers": ["no", "yes"],
        "reports": ["no", "yes"],
    }
    (one,) = read_design(document(column if open_one else turned)).columns
    assert bool(one.notes) is noted


@pytest.mark.slow
def test_two_groups_of_rows_identify_unknown_share(tmp_path):
    """The lie detector's t and the share of yes, from two groups with different p."""
    random = np.random.default_rng(6)
    n, rows = 6000, []
    for place in range(n):
        arm, has = place % 2, random.random() < 0.4
        says = random.random() < (0.7 if has else (0.9 if arm else 0.2))
        rows.append({"q": int(says), "arm": arm})
    column = {
        "matrices": [
            {"rows": {"arm": "0"}, "design": "stochastic_lie_detector", "p": "0.8"},
            {"rows": {"arm": "1"}, "design": "stochastic_lie_detector", "p": "0.1"},
        ]
    }
    (tmp_path / "design.json").write_text(document(column))
    table, _ = load_survey(write(tmp_path / "s.csv", rows), str(tmp_path / "design.json"), "q ~ 1")
    found = analyse_table(table, "q ~ 1").rows()
    assert abs(found["q_t"]["mean"] - 0.7) < 5 * found["q_t"]["sd"] < 0.5
    assert abs(found["Intercept"]["mean"] - np.log(0.4 / 0.6)) < 5 * found["Intercept"]["sd"] < 1.5
    rows[10]["arm"] = 2
    with raises(InputError, "dice.unknown_group", "row 11"):
        load_survey(write(tmp_path / "s.csv", rows), str(tmp_path / "design.json"), "q ~ 1")


@pytest.mark.slow
def test_reports_impossible_under_design_are_a_misfit(tmp_path):
    """One in twenty says yes, although the design forces one in six to."""
    rows = [{"q": int(place % 20 == 0)} for place in range(3000)]
    (tmp_path / "design.json").write_text(document(FORCED))
    table, _ = load_survey(write(tmp_path / "s.csv", rows), str(tmp_path / "design.json"), "q ~ 1")
    assert any("model does not fit" in line for line in analyse_table(table, "q ~ 1").diagnostics.reasons)


NIGERIA = (
    Path(os.environ.get("LDPKIT_DATA", Path(__file__).parents[4] / "shared" / "golden"))
    / "rr"
    / "nigeria.csv"
)
COLUMNS = "cov.asset.index + cov.married + I(cov.age/10) + I((cov.age/10)**2) + cov.education + cov.female"


@pytest.mark.skipif(not NIGERIA.exists(), reason="the survey's data are not here")
def test_nigeria_survey_matches_published_estimates(tmp_path):
    """The mode, the log-likelihood and the sds from the observed information, as published."""
    text = json.dumps({"format": "ldpkit.design/1", "columns": {"rr.q1": FORCED}, "prior": "flat"})
    (tmp_path / "design.json").write_text(text)
    formula = f"rr.q1 ~ {COLUMNS}"
    table, design = load_survey(str(NIGERIA), str(tmp_path / "design.json"), formula, "drop")
    found = analyse_table(table, formula, priors=design.priors).mode
    wanted = [-0.34017, 0.07896, -0.26743, -0.35283, 0.04099, -0.00691, -0.55439]
    sds = [0.49292, 0.04042, 0.24137, 0.26368, 0.02713, 0.04466, 0.16268]
    assert list(found.values.values()) == pytest.approx(wanted, abs=1e-4)
    assert list(found.sds.values()) == pytest.approx(sds, abs=1e-3)
    assert found.log_likelihood == pytest.approx(-1540.11785, abs=1e-4)


def test_number_column_with_a_word_in_it_is_rejected(tmp_path):
    rows = [{"q": place % 2, "age": 20 + place % 50} for place in range(100)]
    rows[16]["age"] = "unknown"
    (tmp_path / "design.json").write_text(document(FORCED))
    with raises(InputError, "table.numbers_and_words", "17 'unknown"):
        load_survey(write(tmp_path / "s.csv", rows), str(tmp_path / "design.json"), "q ~ age")
