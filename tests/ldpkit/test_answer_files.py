"""Files of answers become reports: rows of people and tables of holders, and one clear line for a mistake."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.words.text import say
from ldpkit import perturb
from ldpkit.answer_files import read_answers, table_answers
from ldpkit.perturbing import perturb_file
from schemas import Report, Study
from summaries import summarize
from summaries.people.codebook import Column
from summaries.people.files import read_frame
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.issuers import channel_of
from tests.ldp_client.mechanisms.tables.asking import random_places, table

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
    expected = {
        "hours": 1.5,
        "occupation": "worker",
        "ever": True,
        "rating": {"age": 30.0, "years": 3.0, "rate": 4.0},
        "risk": {"age": 20.0, "years": 2.0, "affair": False},
    }
    assert list(read_answers(STUDY, read_frame(csv), "answers")) == [(1, expected)]


def test_columns_may_come_in_any_order_with_blanks_and_a_byte_order_mark(tmp_path):
    study = Study(studies.document(studies.NUMBER, studies.YES_NO))
    path = write(tmp_path, "a.CSV", "\ufeffever, hours \nno,2\n")
    assert list(read_answers(study, read_frame(path), "answers")) == [(1, {"hours": 2.0, "ever": False})]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hours,ever\n1,yes\nsecret,no\n", ("answer.line_invalid", "row 2: hours: ", say("core.number"))),
        (
            "hours,ever\n1,secret\n",
            ("answer.line_invalid", "row 1: ever: ", say("core.yes_or_no"), "several header rows"),
        ),
        ("hours,ever\n1,yes\nNA,no\n", ("answer.line_invalid", "row 2: hours: ", say("core.missing"))),
        ("hours,ever\n1,yes\ninf,no\n", ("answer.line_invalid", "a.csv", "row 2: hours: ")),
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
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_a_study_that_needs_tokens_is_refused_before_noise(tmp_path):
    study = Study(studies.document(studies.YES_NO, channel=channel_of("https://issuer.example")))
    with raises(RefusedError, "files.takes_tickets"):
        perturb_file(study, write(tmp_path, "a.csv", "ever\nyes\n"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_codebook_decides_on_the_cells_of_a_choice(tmp_path):
    study = Study(studies.document({**studies.YES_NO, "refusal": True}, studies.NUMBER))
    path = write(tmp_path, "a.csv", "ever,hours\nyes,08\nRefused,2\n")
    codebook = {"ever": Column(missing=("Refused",))}
    assert [
        answers["ever"] for _, answers in read_answers(study, read_frame(path), "answers", True, codebook)
    ] == [True, None]


def test_noise_that_another_run_wrote_meanwhile_is_not_replaced(tmp_path):
    answers, out = tmp_path / "answers.csv", tmp_path / "reports.ndjson"
    answers.write_text("ever\nyes\n")
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "files.exists"):
        perturb_file(study, str(answers), str(out), lambda _: out.write_text("first"))
    assert out.read_text() == "first"
    assert not list(tmp_path.glob(".ldpkit-*"))


def test_frame_of_answers_gives_a_report_a_person():
    study = Study(studies.document(studies.YES_NO, studies.NUMBER))
    frame = pd.DataFrame({"ever": [True, False, True], "hours": [1.5, 2, 40], "else": 0}, index=[7, 8, 9])
    reports = perturb(study, frame)
    assert len({report.id for report in reports}) == 3
    assert {report.digest for report in reports} == {study.digest}
    assert summarize(study, reports).questions["ever"].n == 3
    with raises(InputError, ("answer.line_invalid", "the table, row 2: ever")):
        perturb(study, frame.assign(ever=["yes", "maybe", "no"]))


ONE = Study(studies.document(studies.TABLE, **studies.HOLDER))
ALL = Study(studies.document(*studies.TABLES, **{**studies.HOLDER, "id": "all"}))
COLUMNS = table(random_places(2000))


def csv_of(columns):
    lines = [
        ",".join(columns),
        *[",".join(map(repr, row)) for row in zip(*[c.tolist() for c in columns.values()])],
    ]
    return "\n".join(lines) + "\n"


def sums(study, path):
    answers = table_answers(study, path)
    return {q.id: mechanism_for(q).quantise(answers[q.id]).sums for q in study.questions}


def test_columns_come_in_any_order_and_are_prefixed_by_question(tmp_path):
    mixed = {name: COLUMNS[name] for name in ("pe", "v", "t")}
    expected = {"power": mechanism_for(ONE.questions[0]).quantise(COLUMNS).sums}
    text = csv_of(mixed).replace("pe,v,t", "pe, v ,\tt")
    assert sums(ONE, write(tmp_path, "table.csv", text)) == expected
    columns = {
        f"{question}.{name}": np.asarray(column) + shift
        for shift, question in enumerate(("power", "ddplr", "laplace"))
        for name, column in studies.ROWS.items()
    }
    found = sums(ALL, write(tmp_path, "table.csv", csv_of(columns)))
    for shift, question in enumerate(ALL.questions):
        rows = {name: np.asarray(column) + shift for name, column in studies.ROWS.items()}
        assert found[question.id] == mechanism_for(question).quantise(rows).sums


GOOD = "t,v,pe\n10,40,480\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GOOD + "1,,3\n", ("answer.table_invalid", "power.v", "row 2: is missing")),
        (GOOD + "1,-inf,3\n", ("answer.table_invalid", "power.v", "row 2: is infinite")),
        (GOOD + "\n77.5x,2,3\n", ("answer.table_invalid", "power.t", "row 2: must be a number")),
        (GOOD + "1_0,2,3\nx,2,3\n", ("answer.table_invalid", "power.t", "row 2: must be a number")),
        (GOOD + "1,2\n", ("files.line_columns", "3")),
        (GOOD + '1,"2"x,3\n', ("files.line_not_csv", "3")),
        ("t,v,pe\n", ("answer.table_invalid", "power: the table has no rows")),
        ("", ("files.no_header", "is empty")),
        ("t,pe\n1,2\n", ("files.columns", "t, v, pe, each once")),
        ("t,v,pe,t\n1,2,3,4\n", "files.columns"),
        ("t,v,pe\n1,2,\udce4\n", "files.not_utf8"),
    ],
)
def test_error_in_a_table_names_the_problem_without_values(tmp_path, text, code):
    (tmp_path / "table.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with raises(InputError, code, "table.csv") as caught:
        perturb_file(ONE, str(tmp_path / "table.csv"), str(tmp_path / "report.ndjson"))
    assert "77" not in str(caught.value).replace(str(tmp_path), "")
    assert not (tmp_path / "report.ndjson").exists()


def test_perturbing_a_table_writes_one_report_that_has_noise(tmp_path):
    columns = {f"{q.id}.{name}": COLUMNS[name] for q in ALL.questions for name in COLUMNS}
    path, reports = write(tmp_path, "table.csv", csv_of(columns)), []
    for name in ("one.ndjson", "two.ndjson"):
        assert perturb_file(ALL, path, str(tmp_path / name)) == 1
        reports.append(Report.from_json((tmp_path / name).read_text()))
    for question in ALL.questions:
        mechanism_for(question).check(reports[0].payloads[question.id])
        assert reports[0].payloads[question.id] != reports[1].payloads[question.id]
    for taken in (str(tmp_path / "one.ndjson"), path):
        with raises(InputError, "files.reports_exist"):
            perturb_file(ALL, path, taken)


@pytest.mark.slow
def test_a_file_of_any_length_is_read_in_bounded_memory(tmp_path):
    line = "10.25,40.5,480.25\n"
    path = write(tmp_path, "table.csv", "t,v,pe\n" + line * 30_000)
    mechanism = mechanism_for(ONE.questions[0])
    tracemalloc.start()
    found = mechanism.quantise(table_answers(ONE, path)["power"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.count == 30_000
    assert peak < 12 << 20
