"""A missing number is counted as the middle of its bounds, by any path that it enters."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from ldp_client import Device, mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import AnswerError
from ldp_client.files.answers import answers_from_text
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.secure_sum.conftest import QUESTIONS as SUMMED
from tests.secure_sum.conftest import build_study

NUMBER = Study(studies.document(studies.NUMBER))
BOTH = Study(studies.document(studies.NUMBER, studies.LINEAR))
NO_NUMBERS = {
    "core.missing": [None, math.nan, np.float64("nan")],
    "core.infinite": [math.inf, -math.inf],
    "core.number": ["", True, np.bool_(False), [3], "3"],
}
RECORD = {"age": 30, "years": 3, "rate": 4}


def never(_size):
    raise AssertionError("noise was drawn")


@pytest.mark.parametrize(
    ("code", "wrong"), [(code, wrong) for code, values in NO_NUMBERS.items() for wrong in values], ids=repr
)
def test_device_rejects_missing_number_before_spending(tmp_path, code, wrong):
    device = consenting(tmp_path, "4")
    for answers, field in (
        ({"hours": wrong, "rating": RECORD}, "hours"),
        ({"hours": 3, "rating": {**RECORD, "years": wrong}}, "rating.years"),
        ({"hours": 3, "rating": {**RECORD, "rate": wrong}}, "rating.rate"),
    ):
        with raises(AnswerError, code, field=field):
            device.answer(BOTH, answers)
    assert (device.ledger.spent(), device.ledger.queued()) == ([], [])


@pytest.mark.parametrize("name", [name for name in SUMMED if name not in ("ever", "fruit")])
@pytest.mark.parametrize(
    ("code", "wrong"), [("core.missing", None), ("core.missing", math.nan), ("core.infinite", math.inf)]
)
def test_secure_sum_rejects_missing_number(name, code, wrong):
    question = build_study(name).questions[0]
    fields = [field.id for field in (*question.features, *filter(None, [question.response]))]
    answer = dict.fromkeys(fields, wrong) if fields else wrong
    with raises(AnswerError, code, field=f"{name}.{fields[0]}" if fields else name):
        mechanism_for(question).perturb(answer, never)


@pytest.mark.parametrize("question", [studies.NUMBER, studies.NORMAL], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_array_with_missing_number_is_rejected_with_its_row(question, wrong):
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    values = np.full(5000, 20.0)
    values[1233] = wrong
    with raises(AnswerError, "core.row", "1234"):
        perturb_many(mechanism, values, never)


@pytest.mark.parametrize(
    "question", [studies.LINEAR, studies.LOGISTIC, studies.RECORD, studies.YES_NO_RECORD]
)
@pytest.mark.parametrize("field", ["age", "years"])
def test_columns_with_missing_number_are_rejected_with_the_row(question, field):
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    response = question["response"]
    columns = {"age": np.full(9, 30.0), "years": np.full(9, 3.0)}
    columns[response["id"]] = np.ones(9, bool) if "ask" in response else np.ones(9)
    columns[field][6] = math.nan
    with raises(AnswerError, "core.row", "row 7: is missing"):
        perturb_many(mechanism, columns, never)


SIGNALS = Decimal("sNaN")
TWO = np.asarray([1.0, 2.0])


@pytest.mark.parametrize("rows", [3, 300])
@pytest.mark.parametrize("wrong", [pd.NA, pd.NaT, SIGNALS, TWO, np.bool_(True)], ids=repr)
def test_table_with_incomparable_value_is_rejected_with_its_row(rows, wrong):
    """pandas' NA has no truth value and a signalling NaN cannot be compared: errors used to lack the row."""
    mechanism = mechanism_for(Study(studies.document(studies.TABLE, **studies.HOLDER)).questions[0])
    column = [20.0, wrong, *[20.0] * (rows - 2)]
    for values in (column, pd.Series(column, dtype=object)):
        columns = {name: np.full(rows, 20.0) for name in studies.ROWS}
        with raises(AnswerError, "core.row", "row 2: "):
            mechanism.quantise({**columns, "v": values})


@pytest.mark.parametrize("question", [studies.NUMBER, studies.YES_NO], ids=["number", "yes_no"])
@pytest.mark.parametrize("wrong", [SIGNALS, TWO], ids=repr)
def test_missing_number_is_rejected_even_if_blanks_are_refusals(question, wrong):
    offered = {"share": "0.5"} if question is studies.NUMBER else True
    mechanism = mechanism_for(Study(studies.document({**question, "refusal": offered})).questions[0])
    for refusals in (False, True):
        with raises(AnswerError, "core.row", "row 1: "):
            perturb_many(mechanism, [wrong], never, refusals)


CSV = {
    "blank cell": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n,30,3,4\n",
    "blanks": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n  ,30,3,4\n",
    "blank in a record": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n3,30,,4\n",
    "NA": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\nNA,30,3,4\n",
    "nan": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\nnan,30,3,4\n",
    "infinite": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n3,inf,3,4\n",
    "true": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n3,true,3,4\n",
}
NDJSON = {
    "null": '{"hours": null, "rating": {"age": 30, "years": 3, "rate": 4}}',
    "NaN": '{"hours": NaN, "rating": {"age": 30, "years": 3, "rate": 4}}',
    "Infinity": '{"hours": 3, "rating": {"age": Infinity, "years": 3, "rate": 4}}',
    "text": '{"hours": "", "rating": {"age": 30, "years": 3, "rate": 4}}',
    "boolean": '{"hours": true, "rating": {"age": 30, "years": 3, "rate": 4}}',
    "absent": '{"rating": {"age": 30, "years": 3, "rate": 4}}',
    "absent in a record": '{"hours": 3, "rating": {"age": 30, "rate": 4}}',
    "record null": '{"hours": 3, "rating": null}',
    "nobody": "null",
}
GOOD = '{"hours": 3, "rating": {"age": 30, "years": 3, "rate": 4}}\n'


def perturb(folder, study, name, text):
    (folder / "study.json").write_text(study.to_json())
    (folder / name).write_text(text)
    out = folder / "reports.ndjson"
    return main(["perturb", str(folder / "study.json"), str(folder / name), "--out", str(out)]), out


@pytest.mark.parametrize("kind", CSV)
def test_csv_with_missing_number_writes_no_report(tmp_path, capsys, kind):
    code, out = perturb(tmp_path, BOTH, "answers.csv", CSV[kind])
    told = capsys.readouterr().err
    assert (code, out.exists()) == (3, False)
    assert "answers.csv, line 3: " in told
    assert "hours" in told or "rating" in told


@pytest.mark.parametrize("kind", NDJSON)
def test_ndjson_with_missing_number_writes_no_report(tmp_path, capsys, kind):
    code, out = perturb(tmp_path, BOTH, "answers.ndjson", GOOD + NDJSON[kind] + "\n")
    assert (code, out.exists()) == (3, False)
    assert "answers.ndjson, line 2: " in capsys.readouterr().err


def test_empty_line_in_one_column_csv_is_a_missing_number(tmp_path, capsys):
    """CSV readers skip such a line, and with it the person."""
    code, out = perturb(tmp_path, NUMBER, "answers.csv", "hours\n3\n\n4\n")
    assert (code, out.exists()) == (3, False)
    assert "line 3: hours: is missing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "nan", "inf", "-Infinity", "none", "True"])
def test_answer_command_spends_nothing_on_missing_number(tmp_path, capsys, text):
    with Server(content=NUMBER.canonical()) as server:
        url, folder = f"{server.url}/v1/studies/survey", str(tmp_path / "device")
        assert (
            main(["answer", "--max-epsilon", "8", url, "--folder", folder, "--yes", "--set", f"hours={text}"])
            == 3
        )
        assert main(["answer", "--max-epsilon", "8", url, "--folder", folder, "--yes"]) == 3
        assert server.asked("PUT") == []
    assert capsys.readouterr().err.count("hours") == 2
    assert Device(folder, "8").ledger.spent() == []


def test_number_with_underscores_is_rejected():
    with raises(AnswerError, "files.thousands", field="hours"):
        answers_from_text(NUMBER, {"hours": "1_000"})


def test_numbers_far_beyond_their_bounds_are_accepted():
    mechanisms = {"hours": mechanism_for(NUMBER.questions[0])}
    for far in (1e300, -1e300, 10**400, np.float32(1e30)):
        perturb_answers(NUMBER, mechanisms, {"hours": far})
