"""A missing number is refused, by whatever path it enters: none is counted as the middle of its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import AnswerError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.secure_sum import build_study
from tests.ldp_client.devices import consenting

NUMBER = Study(studies.document(studies.NUMBER))
BOTH = Study(studies.document(studies.NUMBER, studies.LINEAR))
NO_NUMBERS = {
    "core.missing": [None, np.float64("nan")],
    "core.infinite": [-math.inf],
    "core.number": ["", True, "3"],
}
RECORD = {"age": 30, "years": 3, "rate": 4}


def never(_size):
    raise AssertionError("noise was drawn")


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("code", "wrong"), [(code, wrong) for code, values in NO_NUMBERS.items() for wrong in values], ids=repr
)
def test_device_rejects_missing_number_before_spending(tmp_path, code, wrong):
    """Answer a question with a number that is missing, infinite or no number."""
    device = consenting(tmp_path, "4")
    for answers, field in (
        ({"hours": wrong, "rating": RECORD}, "hours"),
        ({"hours": 3, "rating": {**RECORD, "years": wrong}}, "rating.years"),
        ({"hours": 3, "rating": {**RECORD, "rate": wrong}}, "rating.rate"),
    ):
        with raises(AnswerError, code, field=field):
            device.answer(BOTH, answers)
    assert (device.ledger.spent(), device.ledger.queued()) == ([], [])


@pytest.mark.parametrize("name", ["hours", "spread"])
@pytest.mark.parametrize(("code", "wrong"), [("core.missing", None), ("core.infinite", math.inf)])
def test_secure_sum_rejects_missing_number(name, code, wrong):
    question = build_study(name).questions[0]
    fields = [field.id for field in (*question.features, *filter(None, [question.response]))]
    answer = dict.fromkeys(fields, wrong) if fields else wrong
    with raises(AnswerError, code, field=f"{name}.{fields[0]}" if fields else name):
        mechanism_for(question).perturb(answer, never)


CSV = {
    "blank cell": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n,30,3,4\n",
    "blank in a record": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n3,30,,4\n",
    "NA": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\nNA,30,3,4\n",
    "infinite": "hours,rating.age,rating.years,rating.rate\n3,30,3,4\n3,inf,3,4\n",
}


def perturb(folder, study, name, text):
    (folder / "study.json").write_text(study.to_json())
    (folder / name).write_text(text)
    out = folder / "reports.ndjson"
    return main(["perturb", str(folder / "study.json"), str(folder / name), "--out", str(out)]), out


@pytest.mark.attack(19)
@pytest.mark.parametrize("kind", CSV)
def test_csv_with_missing_number_writes_no_report(tmp_path, capsys, kind):
    """Leave a number of a table's row blank."""
    code, out = perturb(tmp_path, BOTH, "answers.csv", CSV[kind])
    told = capsys.readouterr().err
    assert (code, out.exists()) == (3, False)
    assert "answers.csv, row 2: " in told
    assert "hours" in told or "rating" in told


@pytest.mark.attack(19)
def test_empty_line_in_one_column_csv_is_a_missing_number(tmp_path, capsys):
    """Leave a line empty, which readers of CSV files skip, and with it the person."""
    code, out = perturb(tmp_path, NUMBER, "answers.csv", "hours\n3\n\n4\n")
    assert (code, out.exists()) == (3, False)
    assert "row 2: hours: is missing" in capsys.readouterr().err
