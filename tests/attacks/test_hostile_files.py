"""A file of refused reports, or one endless line, fills the memory of its reader.

Defence: `ldpkit summarize`, `fit` and all other readers: count refused reports and keep three examples.
"""

import json
import tracemalloc

import pytest

from ldp_client.documents.errors import InputError
from ldp_client.documents.report import MAX_BYTES
from schemas import Report, Study
from summaries.reading import summarize_files
from summaries.refusing import MOST_DOCUMENTS
from tests import studies

STUDY = Study(studies.document(studies.YES_NO))
GOOD = Report("0" * 32, STUDY.id, STUDY.version, STUDY.digest, {"ever": b"\1"})


def peak_of(path):
    """How many bytes reading it took at most, and what it was refused with."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            summarize_files(STUDY, [str(path)])
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def foreign(number, digest="f" * 64):
    """A report on another author's study."""
    return json.dumps({**GOOD.to_document(), "id": f"{number:032x}", "study": "other", "digest": digest})


@pytest.mark.parametrize("bad", [lambda _number: "nonsense", foreign], ids=["nonsense", "foreign"])
def test_refused_reports_are_counted_without_keeping_them(tmp_path, bad):
    def written(count):
        path = tmp_path / "reports.ndjson"
        path.write_text("\n".join([GOOD.to_json(), *map(bad, range(count))]) + "\n")
        return path

    peak_of(written(200))  # What the first time loads stays.
    few, _ = peak_of(written(200))
    many, said = peak_of(written(3000))
    assert many < 1.5 * few
    assert said.startswith("3000 of 3001 reports cannot belong to this study: ")
    assert said.count("reports.ndjson, line") == 3


def test_reading_stops_after_1000_foreign_documents(tmp_path):
    path = tmp_path / "reports.ndjson"
    digests = (f"{number:064x}" for number in range(3 * MOST_DOCUMENTS))
    path.write_text("\n".join([foreign(0, digest) for digest in digests]))
    _, said = peak_of(path)
    assert f"line {MOST_DOCUMENTS + 1}: up to here reports answer more than 1000 study documents" in said


def test_endless_line_counts_as_one_invalid_report(tmp_path):
    path = tmp_path / "reports.ndjson"
    path.write_bytes(b"x" * (9 * MAX_BYTES) + b"\n" + GOOD.to_json().encode() + b"\n")
    peak, said = peak_of(path)
    assert peak < 6 * MAX_BYTES
    assert said.endswith(f"line 1: report: larger than {MAX_BYTES} bytes")
