import pytest

from ldp_client.documents.errors import InputError
from ldp_client.words.text import say
from ldpkit.answer_files import read_answers
from ldpkit.perturbing import perturb_file
from schemas import Study
from summaries.people.codebook import Column
from tests import studies
from tests.kit.errors import raises

STUDY = Study(
    studies.document(studies.NUMBER, studies.CHOICE, studies.YES_NO, studies.LINEAR, studies.LOGISTIC)
)
HEADER = "hours,occupation,ever,rating.age,rating.years,rating.rate,risk.age,risk.years,risk.affair"


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_row_has_a_persons_answers(tmp_path):
    csv = write(tmp_path, "a.csv", f"{HEADER}\n1.5,worker,YES,30,3,4,20,2,0\n")
    record = {"age": 30.0, "years": 3.0, "rate": 4.0}
    expected = {
        "hours": 1.5,
        "occupation": "worker",
        "ever": True,
        "rating": record,
        "risk": {"age": 20.0, "years": 2.0, "affair": False},
    }
    assert list(read_answers(STUDY, csv)) == [(1, expected)]


def test_columns_may_come_in_any_order_with_blanks_and_a_byte_order_mark(tmp_path):
    study = Study(studies.document(studies.NUMBER, studies.YES_NO))
    path = write(tmp_path, "a.CSV", "\ufeffever, hours \nno,2\n")
    assert list(read_answers(study, path)) == [(1, {"hours": 2.0, "ever": False})]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "hours,ever\n1,yes\nsecret,no\n",
            ("answer.line_invalid", "row 2: hours: ", say("core.number")),
        ),
        (
            "hours,ever\n1,secret\n",
            ("answer.line_invalid", "row 1: ever: ", say("core.yes_or_no"), "several header rows"),
        ),
        (
            "hours,ever\n1,yes\nNA,no\n",
            ("answer.line_invalid", "row 2: hours: ", say("core.missing")),
        ),
        ("hours\n1\n", ("files.column_missing", "column ever")),
        ("hours,ever\n1,yes\n2,no\n-99,no\n", ("table.looks_missing", "hours: 1 row")),
        ("hours,ever\n8,yes\n12,no\n99,no\n", ("table.looks_missing", "hours: 1 row")),
        ("hours,ever\n", ("files.no_answers", "a.csv")),
    ],
)
def test_csv_error_names_line_and_column_without_the_value(tmp_path, text, code):
    study = Study(studies.document(studies.NUMBER, studies.YES_NO))
    path = write(tmp_path, "a.csv", text)
    with raises(InputError, code) as caught:
        perturb_file(study, path, str(tmp_path / "reports"))
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("cell", ["secret", "inf"])
def test_one_bad_answer_writes_nothing(tmp_path, cell):
    study = Study(studies.document(studies.NUMBER))
    path = write(tmp_path, "a.csv", f"hours\n1\n{cell}\n")
    with raises(InputError, "answer.line_invalid", "a.csv", "row 2"):
        perturb_file(study, path, str(tmp_path / "out"))
    with raises(InputError, "files.reports_exist"):
        perturb_file(study, path, path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    assert "hours" in (tmp_path / "a.csv").read_text()


def test_codebook_decides_on_the_cells_of_a_choice(tmp_path):
    study = Study(studies.document({**studies.YES_NO, "refusal": True}, studies.NUMBER))
    path = write(tmp_path, "a.csv", "ever,hours\nyes,08\nRefused,2\n")
    codebook = {"ever": Column(missing=("Refused",))}
    assert [answers["ever"] for _, answers in read_answers(study, path, True, codebook)] == [True, None]
