"""pandas or pyarrow reads an export's CSV and takes public labels for numbers or for missing cells.

Defence: `fit` and `summarize`: accept only text as a public value, and refuse a missing one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import csv as arrow_csv

from collector.remote.writing import write_reports
from ldp_client.documents.errors import InputError
from schemas import Report, Study
from summaries import cell_summaries
from summaries.reading import load_evidence
from tests import studies
from tests.kit.errors import raises

READERS = {
    "pandas": pd.read_csv,
    "pyarrow": arrow_csv.read_csv,
    "dictionaries": lambda path: pd.read_csv(path).to_dict("records"),
}


def exported(folder: Path, labels: list[str]) -> tuple[Study, str]:
    """A report of the first label, two of the second, and so on."""
    study = Study(studies.document(studies.YES_NO, public=[{"id": "release", "choices": labels}]))
    head = (study.id, study.version, study.digest, {"ever": b"\x01"})
    some = [label for place, label in enumerate(labels, 1) for _ in range(place)]
    reports = [Report(f"{place:031x}a", *head, public={"release": one}) for place, one in enumerate(some)]
    path = folder / "reports.csv"
    write_reports(reports, path)
    return study, str(path)


def counts(study: Study, given: object) -> list[int]:
    """How many reports each label has, 0 for none."""
    found = cell_summaries(study, given)  # type: ignore[arg-type]
    return [found[label,]["ever"].n if (label,) in found else 0 for label in study.public[0].choices]


LABELS = [["1.1", "1.2", "1.10"], ["1.0", "1"], ["1e3", "1000"], ["01", "1"], ["true", "false"], ["7", "8"]]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_are_not_text_are_refused(labels: list[str], reader: str, tmp_path: Path) -> None:
    study, path = exported(tmp_path, labels)
    assert counts(study, path) == list(range(1, len(labels) + 1))
    with raises(InputError, "reports.many_refused", "public.release", "dtype=str"):
        counts(study, READERS[reader](path))
    assert counts(study, pd.read_csv(path, dtype=str)) == list(range(1, len(labels) + 1))


def test_parquet_made_from_numeric_labels_is_refused(tmp_path: Path) -> None:
    study, path = exported(tmp_path, ["1.1", "1.10"])
    pd.read_csv(path).to_parquet(tmp_path / "reports.parquet")
    with raises(InputError, "reports.many_refused", "public.release", "dtype=str"):
        counts(study, str(tmp_path / "reports.parquet"))


@pytest.mark.parametrize("label", ["NA", "None", "nan"])
def test_labels_that_pandas_reads_as_missing_are_refused(label: str, tmp_path: Path) -> None:
    study, path = exported(tmp_path, [label, "DE"])
    with raises(InputError, "reports.many_refused", "public.release: is missing"):
        counts(study, pd.read_csv(path))
    assert counts(study, pd.read_csv(path, keep_default_na=False)) == [1, 2]


def test_named_pipe_is_refused_with_a_hint(tmp_path: Path) -> None:
    study, _ = exported(tmp_path, ["a", "b"])
    os.mkfifo(tmp_path / "63")
    with raises(InputError, "reports.stream", "63"):
        load_evidence(study, tmp_path / "63")


def test_file_content_given_as_path_is_refused(tmp_path: Path) -> None:
    """The operating system's error message contained all reports."""
    study, path = exported(tmp_path, ["a", "b"])
    text = Path(path).read_text()
    for given in (text, '{"format": "ldpkit.report/1"}'):
        with raises(InputError, "reports.text_not_path") as told:
            load_evidence(study, given)
        assert text not in str(told.value)
