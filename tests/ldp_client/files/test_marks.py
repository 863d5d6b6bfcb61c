"""Numbers with marks between thousands, in files of answers, one by one, and in a participant's page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.answers import answers_from_text, values_from_text
from ldp_client.files.batch import perturb_file
from ldp_client.files.marks import TwoReadings
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.portable import npm

AGE = {"id": "age", "bounds": ["0", "1000"], "step": "0.01"}
PEOPLE = Study(studies.document({**studies.NUMBER, "bounds": ["0", "10000"]}, studies.LINEAR, public=[AGE]))
HOLDER = Study(studies.document(studies.TABLE, **studies.HOLDER))
ROW = {"hours": "3", "rating.age": "30", "rating.years": "4", "rating.rate": "2", "age": "30"}


def perturbed(folder, study, columns, values):
    """Perturb a file in which these values stand in the columns of that name."""
    rows = [",".join(columns), *[",".join(one.get(column, "3") for column in columns) for one in values]]
    (folder / "answers.csv").write_text("\n".join(rows) + "\n")
    return perturb_file(study, str(folder / "answers.csv"), str(folder / "out.ndjson"))


@pytest.mark.attack(19)
@pytest.mark.parametrize("column", ["hours", "rating.years", "age"])
@pytest.mark.parametrize("second", ["1.250", "950"])
def test_ambiguous_number_column_is_rejected(tmp_path, column, second):
    """Write 2.500 for 2500 in answers that go behind noise: taken for 2.5, nobody could find it later."""
    values = [{**ROW, column: one} for one in ("2.500", second)]
    with raises(InputError, "files.two_readings", "answers.csv", column):
        perturbed(tmp_path, PEOPLE, list(ROW), values)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


@pytest.mark.parametrize("other", ["2.5", "0.500", "1250", "2.5000"])
def test_one_clear_decimal_makes_column_unambiguous(tmp_path, other):
    values = [{**ROW, "hours": one} for one in ("2.500", other)]
    assert perturbed(tmp_path, PEOPLE, list(ROW), values) == 2


def test_ambiguous_column_of_data_holder_is_rejected(tmp_path):
    """Also where only a later part of the file has them."""
    columns = [field.id for field in HOLDER.questions[0].fields]
    values = [{}] * 9000 + [{columns[-1]: "1.250"}] * 3
    with raises(InputError, "files.two_readings", "answers.csv", columns[-1]):
        perturbed(tmp_path, HOLDER, columns, values)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]
    assert perturbed(tmp_path, HOLDER, columns, [*values, {columns[-1]: "1.25"}]) == 1


@pytest.mark.parametrize("number", ["2.500", "2,500", "-1.500"])
@pytest.mark.parametrize("column", ["hours", "rating.years", "age"])
def test_ambiguous_single_value_is_rejected(column, number):
    with raises(AnswerError, "files.two_readings", field=column) as refused:
        values_from_text(PEOPLE, {**ROW, column: number})
    assert number not in str(refused.value)


MARKED = ["1 000", "1'000", "1\u2019000", "1\u00a0000", "1\u202f000", "12 000.5", "1_000"]


@pytest.mark.parametrize("number", MARKED)
@pytest.mark.parametrize("column", ["hours", "age"])
def test_blanks_and_apostrophes_between_thousands_are_rejected(column, number):
    with raises(AnswerError, "files.thousands", field=column):
        answers_from_text(PEOPLE, {**ROW, column: number})


@pytest.mark.parametrize("number", ["\u0661.\u0662\u0660\u0660", "\u096f.\u0968\u0966\u0966"])
def test_digits_of_any_script_are_recognised_as_thousands(number):
    readings = TwoReadings([""])
    readings.look_at([number, "\u0669\u0665\u0660"])
    assert readings.first == number
    readings.look_at(["\u0660.\u0661\u0662\u0665"])
    assert readings.first == ""


# What is typed, the bounds, and the number that it is taken for, or what is wrong with it.
TYPED = [
    ["12,000", [0, 10000], "two_readings"],
    ["12.000", [0, 10000], "two_readings"],
    ["-1,500", [-1000, 1000], "two_readings"],
    # A count of choices, up to 999.
    ["1,000", [0, 999], "two_readings"],
    ["900,000", [0, 100], "two_readings"],
    ["12000", [0, 10000], "high"],
    ["1,500.5", [0, 1000], "high"],
    ["55,5", [0, 80], "55.5"],
    ["0,125", [0, 80], "0.125"],
    ["1.2340", [0, 80], "1.2340"],
    ["9,999.5", [0, 10000], "9999.5"],
]
READ = """
globalThis.document = { documentElement: { lang: "en" } };
const { readNumber } = await import(process.argv[1]);
const read = ([typed, bounds]) => readNumber(typed, bounds);
const said = ({ problem, number }) => problem ?? number;
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(read).map(said)));
"""


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.attack(19)
def test_ambiguous_number_on_the_page_is_rejected_whatever_the_bounds():
    """Type a number beyond the bounds with a mark between thousands: the page took a thousandth of it."""
    entries = Path(__file__).parents[3] / "collector" / "pages" / "assets" / "entries.js"
    read = npm.node("--input-type=module", "-e", READ, entries.as_uri(), json.dumps(TYPED))
    assert json.loads(read) == [expected for _, _, expected in TYPED]
