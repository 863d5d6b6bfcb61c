"""A holder's file: CSV to one report, and one clear line for what is wrong with it."""

import tracemalloc

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit.answer_files import table_answers
from ldpkit.perturbing import perturb_file
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables.asking import random_places, table

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
    answers = table_answers(study, str(path))
    return {q.id: mechanism_for(q).quantise(answers[q.id]).sums for q in study.questions}


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "table.csv").write_text(text)
        return str(tmp_path / "table.csv")

    return write


def test_columns_may_come_in_any_order(written):
    mixed = {name: COLUMNS[name] for name in ("pe", "v", "t")}
    expected = {"power": mechanism_for(ONE.questions[0]).quantise(COLUMNS).sums}
    assert sums(ONE, written(csv_of(mixed).replace("pe,v,t", "pe, v ,\tt"))) == expected


def test_columns_are_prefixed_by_question(written):
    columns = {
        f"{question}.{name}": np.asarray(column) + shift
        for shift, question in enumerate(("power", "ddplr", "laplace"))
        for name, column in studies.ROWS.items()
    }
    found = sums(ALL, written(csv_of(columns)))
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
def test_csv_error_names_the_problem_without_values(tmp_path, text, code):
    (tmp_path / "table.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with raises(InputError, code, "table.csv") as caught:
        perturb_file(ONE, str(tmp_path / "table.csv"), str(tmp_path / "report.ndjson"))
    assert "77" not in str(caught.value).replace(str(tmp_path), "")
    assert not (tmp_path / "report.ndjson").exists()


def test_perturbing_a_table_writes_one_report_that_has_noise(tmp_path, written):
    columns = {f"{q.id}.{name}": COLUMNS[name] for q in ALL.questions for name in COLUMNS}
    path, reports = written(csv_of(columns)), []
    for name in ("one.ndjson", "two.ndjson"):
        assert perturb_file(ALL, path, str(tmp_path / name)) == 1
        reports.append(Report.from_json((tmp_path / name).read_text()))
    for question in ALL.questions:
        mechanism_for(question).check(reports[0].payloads[question.id])
        assert reports[0].payloads[question.id] != reports[1].payloads[question.id]
    with raises(InputError, "files.reports_exist"):
        perturb_file(ALL, path, str(tmp_path / "one.ndjson"))


@pytest.mark.slow
def test_a_file_of_any_length_is_read_in_bounded_memory(written):
    line = "10.25,40.5,480.25\n"
    path = written("t,v,pe\n" + line * 30_000)
    mechanism = mechanism_for(ONE.questions[0])
    tracemalloc.start()
    found = mechanism.quantise(table_answers(ONE, path)["power"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.count == 30_000
    assert peak < 12 << 20
