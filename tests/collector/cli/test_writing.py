"""Decoded tables: columns of their own, and numbers that stay numbers."""

from __future__ import annotations

import csv

import pyarrow.parquet

from ldpkit.cli.report_files import DatedReport, write_table
from schemas import Study
from summaries.decoding import Decoding
from tests import studies


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
        assert write_table(reports, tmp_path / name, decoding) == 2
    first, second = csv.DictReader((tmp_path / "table.csv").open())
    assert float(first["noisy.hours"]) == float(first["unbiased.hours"]) < 0
    assert second["noisy.hours"] == "'=1+1"
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert table["noisy.hours"] == [first["noisy.hours"], "=1+1"]
