import gzip
import json
import tracemalloc

import pytest

from inference import fit
from ldp_client.documents.errors import InputError
from ldp_client.documents.report import MAX_BYTES
from ldpkit.cli import main
from ldpkit.cli.exporting import whole_export
from schemas import Report, Study
from schemas.export_end import FORMAT, end_line
from summaries import summarize
from summaries.findings import MOST_DOCUMENTS
from summaries.reading import evidence_of
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of
from tests.kit.tables import write_columns

STUDY = Study(studies.document(studies.YES_NO, studies.NUMBER))
REPORTS = reports_of(STUDY, [{"ever": True, "hours": 2}] * 20)
WHOLE = summarize(STUDY, REPORTS).to_json()


def write(path, reports, extra=""):
    path.write_text("".join(report.to_json() + "\n" for report in reports) + extra)
    return str(path)


def test_repeated_reports_across_files_count_once(tmp_path, capsys):
    first, second = write(tmp_path / "a", REPORTS[:12]), write(tmp_path / "b", REPORTS[8:])
    assert summarize(STUDY, [first, second]).to_json() == WHOLE
    assert "4 reports were repeated" in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"\xff" * 30, b"a"], ids=["thirty bytes", "one byte"])
def test_damaged_parquet_is_rejected_or_gives_same_summary(tmp_path, damage):
    """Pages have checksums, so no changed byte gives another report; parts of the footer are unused."""
    path = tmp_path / "r.parquet"
    write_columns(REPORTS, path)
    whole, errors = path.read_bytes(), []
    same = summarize(STUDY, [str(path)]).to_json()
    for place in range(0, len(whole), 151):
        path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
        try:
            assert summarize(STUDY, [str(path)]).to_json() == same
        except InputError as error:
            errors.append(str(error))
    assert not [error for error in errors if "\n" in error]
    assert len([error for error in errors if "damaged, or is not a Parquet file" in error]) > len(whole) / 453


def test_impossible_reports_are_counted_and_shown(tmp_path):
    bad = [
        Report(f"{i:032x}", "survey", 1, STUDY.digest, {"ever": b"\x09", "hours": bytes(4)}) for i in range(7)
    ]
    path = write(tmp_path / "a", [*REPORTS, *bad], "nonsense\n")
    with raises(InputError, "reports.many_refused", "28") as caught:
        summarize(STUDY, [path])
    assert "line 21" in str(caught.value)
    assert "\n" not in str(caught.value)


ONE = Study(studies.document(studies.YES_NO))
GOOD_ONE = Report("0" * 32, ONE.id, ONE.version, ONE.digest, {"ever": b"\1"})


def peak_of(path):
    """How many bytes reading it took at most, and what it was refused with."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            summarize(ONE, [str(path)])
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def foreign(number, digest="f" * 64):
    """A report on another author's study."""
    return json.dumps({**GOOD_ONE.to_document(), "id": f"{number:032x}", "study": "other", "digest": digest})


@pytest.mark.attack(15)
@pytest.mark.parametrize("bad", [lambda _number: "nonsense", foreign], ids=["nonsense", "foreign"])
def test_refused_reports_are_counted_without_keeping_them(tmp_path, bad):
    """Send thousands of refused reports, so that keeping them fills the reader's memory."""

    def written(count):
        path = tmp_path / "reports.ndjson"
        path.write_text("\n".join([GOOD_ONE.to_json(), *map(bad, range(count))]) + "\n")
        return path

    peak_of(written(100))  # What the first time loads stays.
    few, _ = peak_of(written(100))
    many, said = peak_of(written(1200))
    # A kept report would take more than a hundred bytes.
    assert many - few < 50_000
    assert said.startswith("1200 of 1201 reports cannot belong to this study: ")
    assert said.count("reports.ndjson, line") == 3


@pytest.mark.attack(15)
def test_reading_stops_after_1000_foreign_documents(tmp_path):
    """Name another study document in each report, so that counting them fills the reader's memory."""
    path = tmp_path / "reports.ndjson"
    digests = (f"{number:064x}" for number in range(3 * MOST_DOCUMENTS))
    path.write_text("\n".join([foreign(0, digest) for digest in digests]))
    _, said = peak_of(path)
    assert f"line {MOST_DOCUMENTS + 1}: up to here reports answer more than 1000 study documents" in said


@pytest.mark.attack(15)
def test_endless_line_counts_as_one_invalid_report(tmp_path):
    """Send one line without an end."""
    path = tmp_path / "reports.ndjson"
    path.write_bytes(b"x" * (9 * MAX_BYTES) + b"\n" + GOOD_ONE.to_json().encode() + b"\n")
    peak, said = peak_of(path)
    assert peak < 6 * MAX_BYTES
    assert said.endswith(f"line 1: report: larger than {MAX_BYTES} bytes")


MANY = reports_of(ONE, [i % 3 == 0 for i in range(200)])
LINES = [report.to_json() + "\n" for report in MANY]
WHOLE_OF_MANY = summarize(ONE, MANY).to_json()


def write_lines(path, *parts):
    path.write_text("".join(parts))
    return str(path)


@pytest.mark.attack(19)
def test_label_that_looks_like_end_line_is_kept(tmp_path):
    """Give a public value a label that looks like an export's end line."""
    labels = [FORMAT, '{"format":"' + FORMAT + '"', end_line(0).strip()]
    study = Study(studies.document(studies.YES_NO, public=[{"id": "region", "choices": labels}]))
    reports = reports_of(study, [{"ever": True, "region": label} for label in labels])
    lines = [*(report.to_json() + "\n" for report in reports), end_line(3)]
    assert list(whole_export((line.encode() for line in lines), Report.from_json)) == reports
    assert summarize(study, [write_lines(tmp_path / "reports.ndjson", *lines)]).questions["ever"].n == 3


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((*LINES[:90], end_line(200)), ("reports.wrong_end_of_export", "line 91: 90")),
        ((end_line(200),), ("reports.wrong_end_of_export", "line 1: 0")),
        (
            (*LINES[:90], end_line(90), *LINES[90:120], end_line(110)),
            ("reports.wrong_end_of_export", "line 122: 30"),
        ),
        ((*LINES, end_line(200)[:-10]), ("reports.wrong_end_of_export", "line 201: 200")),
    ],
)
def test_wrong_end_line_is_rejected(tmp_path, parts, line):
    """Cut an export off, or lose some of its lines, so that its end line counts others."""
    path = write_lines(tmp_path / "r.ndjson", *parts)
    for job in (lambda: summarize(ONE, [path]), lambda: fit(ONE, evidence_of(ONE, path))):
        with raises(InputError, line):
            job()


def test_joined_exports_are_read_whole(tmp_path):
    """Joined exports stay readable, also with an empty one among them, and without any end line."""
    joined = (*LINES[:90], end_line(90), end_line(0), *LINES[90:], end_line(110))
    assert summarize(ONE, [write_lines(tmp_path / "a", *joined)]).to_json() == WHOLE_OF_MANY
    assert summarize(ONE, [write_lines(tmp_path / "b", *LINES)]).to_json() == WHOLE_OF_MANY


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("".join(LINES).encode("utf-16"), ("reports.not_ndjson", "UTF-16 text: save it as UTF-8")),
        (gzip.compress("".join(LINES).encode()), ("reports.not_ndjson", "compressed with gzip")),
        (b"report_id,study\n", ("reports.not_ndjson", "CSV")),
        (b"PAR1", ("reports.not_ndjson", "name that ends in .parquet")),
        (b"", "reports.none"),
    ],
)
def test_files_of_other_formats_are_rejected(tmp_path, content, says):
    (tmp_path / "r.ndjson").write_bytes(content)
    (tmp_path / "study.json").write_text(ONE.to_json())
    with raises(InputError, says):
        summarize(ONE, [str(tmp_path / "r.ndjson")])
    command = ["summarize", str(tmp_path / "study.json"), str(tmp_path / "r.ndjson")]
    assert main([*command, "--out", str(tmp_path / "s.json")]) == 3
    assert not (tmp_path / "s.json").exists()


def test_byte_order_mark_is_ignored(tmp_path):
    for name, text in (("r.ndjson", "".join(LINES)), ("s.json", WHOLE_OF_MANY)):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert summarize(ONE, str(tmp_path / name)).to_json() == WHOLE_OF_MANY
