"""Questions and labels whose columns in a decoded table would bear one name."""

from __future__ import annotations

import csv

import pyarrow.parquet

from collector.exports.dated import DatedReport
from collector.remote.writing import write_decoded
from ldp_client import mechanism_for
from schemas import Report, Study
from summaries.decoding import Decoding
from tests import studies


def test_label_does_not_take_column_of_other_question():
    """Shares of `c` and a number `c.x` would share one column name."""
    choice = {**studies.ONE_OF, "id": "c", "choices": ["x", "y.z"]}
    number = {**studies.NUMBER, "id": "c.x"}
    inner = {**choice, "id": "c.y", "choices": ["z", "w"]}
    study = Study(studies.document(choice, number, inner))
    answers = {"c": "x", "c.x": 1.0, "c.y": "w"}
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    payloads = {name: mechanisms[name].perturb(answer) for name, answer in answers.items()}
    report = Report("0" * 32, study.id, study.version, study.digest, payloads)
    decoding = Decoding(lambda *_: study)
    decoding.meet(report)
    cells = decoding.cells(report)
    assert len(cells) == len(decoding.columns) == 3 + 1 + 2 + 2
    assert cells["unbiased.c.x"] == cells["noisy.c.x"]


def test_negative_number_stays_number_in_mixed_column(tmp_path):
    """In a column of numbers and labels, it used to get the apostrophe that escapes a formula."""
    number = Study(studies.document({**studies.NUMBER, "id": "hours"}))
    choice = Study(studies.document({**studies.ONE_OF, "id": "hours", "choices": ["=1+1", "x"]}, version=2))
    lowest = (-(1 << 20)).to_bytes(4, "big", signed=True)
    # Randomized response of two choices, of which it says the first.
    label = bytes(1)
    reports = [
        DatedReport("0" * 32, number.id, 1, number.digest, {"hours": lowest}),
        DatedReport("1" * 32, choice.id, 2, choice.digest, {"hours": label}),
    ]
    for report in reports:
        report.day = "2026-06-15"
    for name in ("table.csv", "table.parquet"):
        decoding = Decoding(lambda version, _: {1: number, 2: choice}[version])
        assert write_decoded(reports, tmp_path / name, decoding) == 2
    first, second = csv.DictReader((tmp_path / "table.csv").open())
    assert float(first["noisy.hours"]) == float(first["unbiased.hours"]) < 0
    assert second["noisy.hours"] == "'=1+1"
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert table["noisy.hours"] == [first["noisy.hours"], "=1+1"]
