"""Write 1.200 for twelve hundred: in a census or a table it was read as one and a fifth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.analyses.survey import load_survey, read_frame
from inference.analyses.table import Table
from inference.design.people import people_of_table
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.answers import answers_from_text, read_answers
from ldp_client.files.marks import TwoReadings
from schemas import Study
from tests import studies
from tests.attacks.test_slips_in_a_census import asked, census_of, said
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


@pytest.mark.parametrize("rows", ["south,1.200\nwest,2.400\n", 'south,"1,200"\nwest,"2,400"\n'])
def test_marks_between_thousands_are_refused_in_a_census(rows: str, tmp_path: Path) -> None:
    with raises(InputError, "table.ambiguous_thousands_mark", "1200"):
        said(asked(), "armed ~ region", census_of(tmp_path, "north,950\n" + rows))


@pytest.mark.parametrize(
    "number", ["1.200", "\u0661.\u0662\u0660\u0660", "\u096f.\u0968\u0966\u0966", "\uff11,\uff12\uff10\uff10"]
)
def test_the_digits_of_any_script_may_be_thousands(number: str, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(f'hours\n"{number}"\n', encoding="utf-8")
    study = Study(studies.document(studies.NUMBER))
    if "," not in number:
        with pytest.raises(InputError, match="exactly three digits"):
            list(read_answers(study, str(tmp_path / "answers.csv")))
    readings = TwoReadings([""])
    readings.look_at([number, "\u0669\u0665\u0660"])
    assert readings.first == number
    readings.look_at(["\u0660.\u0661\u0662\u0665"])
    assert readings.first == ""


MARKED = ["1 000", "1'000", "1\u2019000", "1\u00a0000", "1\u202f000", "12 000.5", "1_000"]


@pytest.mark.parametrize("number", MARKED)
def test_blanks_and_apostrophes_between_thousands_are_no_levels(number: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column income has numbers with marks between thousands") as refused:
        load(tmp_path, lambda row: number if row % 2 else "900")
    assert str(refused.value).endswith(("write 1000", "write 12000.5"))


def test_codes_with_commas_are_told_how_to_stay_codes(tmp_path: Path) -> None:
    """What looks like decimals may be the codes of a choice: which it is only the analyst knows."""
    with pytest.raises(InputError, match=r"such as 1,2, .* write 1\.2; where they are codes .* \(c1,2\)"):
        load(tmp_path, lambda row: "1,2" if row % 2 else "3")
    assert load(tmp_path, lambda row: "c1,2" if row % 2 else "c3").n == 60


@pytest.mark.parametrize("number", MARKED)
@pytest.mark.parametrize("column", ["hours", "age"])
def test_numbers_of_answer_files_are_refused_with_their_reason(column: str, number: str) -> None:
    age = {"id": "age", "bounds": ["0", "20000"], "step": "0.5"}
    study = Study(studies.document(studies.NUMBER, public=[age]))
    with raises(AnswerError, "files.thousands") as refused:
        answers_from_text(study, {"hours": "3", "age": "5", column: number})
    assert number in ("1 000", "1'000") or number not in str(refused.value)


def test_marks_between_thousands_are_refused_in_tables(tmp_path: Path) -> None:
    """All numbers that have one have three digits behind it, and no number shows that these are decimals."""
    for shown in (
        lambda row: f"{1 + row % 9}.250",
        lambda row: "1.200.000" if row % 2 else "900",
        lambda row: f"{row}.250" if row else "NA",
    ):
        with raises(InputError, "table.ambiguous_thousands_mark", "income"):
            load(tmp_path, shown)
    for plain in (
        lambda row: f"{row % 9}.250",
        lambda row: f"{1 + row % 9}.25",
        lambda row: "1200" if row else "1.250",
        lambda row: str(900 + row),
    ):
        assert load(tmp_path, plain).n == 60


@pytest.mark.parametrize("rows", ["south,1.200\nwest,2.400\n", 'south,"1,200"\nwest,"2,400"\n'])
def test_marks_between_thousands_are_refused_in_a_table_of_people(rows: str, tmp_path: Path) -> None:
    """A plan counted 1.2 people in the south, and 950 in the north."""
    (tmp_path / "people.csv").write_text("region,count\nnorth,950\n" + rows)
    with raises(InputError, "table.ambiguous_thousands_mark", "1200"):
        people_of_table(read_frame(str(tmp_path / "people.csv")), ["region"])
