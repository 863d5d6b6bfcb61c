"""Write 1.200 for twelve hundred in a file of answers, or 1 000 in a table.

Defence: `ldpkit fit`: refuses such a column. Known limit: 1.200 for twelve hundred, in a table, its weights
or a census.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.analyses.survey import load_survey
from inference.analyses.table import Table
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.answers import answers_from_text, read_answers
from ldp_client.files.marks import TwoReadings
from schemas import Study
from tests import studies
from tests.kit.errors import raises

DESIGN = {
    "format": "ldpkit.design/1",
    "columns": {
        "armed": {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]},
    },
}


def load(folder: Path, ages: Callable[[int], str]) -> Table:
    (folder / "design.json").write_text(json.dumps(DESIGN))
    rows = "".join(f'{"yes" if row % 3 else "no"},"{ages(row)}"\n' for row in range(60))
    (folder / "table.csv").write_text("armed,income\n" + rows)
    return load_survey(str(folder / "table.csv"), str(folder / "design.json"), "armed ~ income")[0]


@pytest.mark.parametrize(
    "number", ["1.200", "\u0661.\u0662\u0660\u0660", "\u096f.\u0968\u0966\u0966", "\uff11,\uff12\uff10\uff10"]
)
def test_digits_of_any_script_are_recognised_as_thousands(number: str, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(f'hours\n"{number}"\n', encoding="utf-8")
    study = Study(studies.document(studies.NUMBER))
    if "," not in number:
        with raises(InputError, "files.two_readings", "answers.csv", "hours"):
            list(read_answers(study, str(tmp_path / "answers.csv")))
    readings = TwoReadings([""])
    readings.look_at([number, "\u0669\u0665\u0660"])
    assert readings.first == number
    readings.look_at(["\u0660.\u0661\u0662\u0665"])
    assert readings.first == ""


MARKED = ["1 000", "1'000", "1\u2019000", "1\u00a0000", "1\u202f000", "12 000.5", "1_000"]


@pytest.mark.parametrize("number", MARKED)
def test_blanks_and_apostrophes_between_thousands_are_rejected(number: str, tmp_path: Path) -> None:
    with raises(InputError, "table.columns_invalid", "column income", f"{number!a}"):
        load(tmp_path, lambda row: number if row % 2 else "900")


def test_codes_with_commas_are_rejected_with_remedy(tmp_path: Path) -> None:
    """What looks like decimals may be codes of a choice, which only the analyst knows."""
    with raises(InputError, "table.columns_invalid", "1,2", "(c1,2)"):
        load(tmp_path, lambda row: "1,2" if row % 2 else "3")
    assert load(tmp_path, lambda row: "c1,2" if row % 2 else "c3").n == 60


@pytest.mark.parametrize("number", MARKED)
@pytest.mark.parametrize("column", ["hours", "age"])
def test_marked_numbers_in_answer_files_are_rejected_with_reason(column: str, number: str) -> None:
    age = {"id": "age", "bounds": ["0", "20000"], "step": "0.5"}
    study = Study(studies.document(studies.NUMBER, public=[age]))
    with raises(AnswerError, "files.thousands") as refused:
        answers_from_text(study, {"hours": "3", "age": "5", column: number})
    assert number in ("1 000", "1'000") or number not in str(refused.value)
