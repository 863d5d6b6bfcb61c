"""Nothing is dropped silently: blanks, duplicates, damaged lines and wrong files are refused, or counted.

Each row or report that goes in comes out, or is counted as left out, for every kind of file.
"""

import json
import re

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AnswerError
from ldpkit.cli import main
from schemas import Report, Study
from summaries import reading
from tests import studies
from tests.kit.reporting import reports_of, write_columns

REFUSED = 3
PEOPLE = Study(studies.document(studies.NUMBER, studies.YES_NO))
NEWER = Study({**PEOPLE.document, "version": 2})
FOREIGN = Study({**PEOPLE.document, "id": "other"})
# What a command says of rows that it read and left out.
STATED = re.compile(r"(\d+) reports? (?:were repeated|answers? other versions)")
HEAD, ROW, MAN = "hours,ever", "3,yes", [{"hours": 3, "ever": True}]
# Tables by name, and how many people each has.
TABLES = {
    "whole": ([HEAD, ROW, "4,no"], 2),
    "a blank cell": ([HEAD, ROW, "4,"], 2),
    "a blank number": ([HEAD, ROW, ",no"], 2),
    "a blank row": ([HEAD, ROW, ",", "4,no"], 3),
    "a row cut off": ([HEAD, ROW, "4"], 2),
    "a quote that never ends": ([HEAD, ROW, '"4,no', ROW], 3),
    "a cell too many": ([HEAD, ROW, "4,no,7"], 2),
    "no rows": ([HEAD], 0),
    "nothing": ([], 0),
    "no header": ([ROW, "4,no"], 2),
    "a column too many": ([HEAD + ",more", ROW + ",1"], 1),
    "a column twice": ([HEAD + ",ever", ROW + ",no"], 1),
    "a column missing": (["hours", "3"], 1),
    "a study": ([PEOPLE.to_json()], 1),
    "a word for no answer": ([HEAD, "NA,yes"], 1),
}


def check_rows(name, rows, people, code, words, made):
    """All people came out, and other rows are counted in words; or nothing came out, and one line says why.

    people: how many the rows are of. made: how many came out; None for no file.
    """
    if code:
        # Lines before may say how far it came.
        lines = [line for line in words.splitlines() if line.startswith("ldpkit: ")]
        assert (code, len(lines), made) == (REFUSED, 1, None), name
    else:
        stated = sum(int(count) for count in STATED.findall(words))
        assert (made, people + stated) == (people, rows), name


def test_table_of_answers_keeps_every_row(tmp_path, capsys):
    study, out = tmp_path / "study.json", tmp_path / "out.ndjson"
    study.write_text(PEOPLE.to_json())
    for name, (lines, rows) in TABLES.items():
        table = tmp_path / f"{name}.csv"
        table.write_text("".join(f"{line}\n" for line in lines))
        out.unlink(missing_ok=True)
        code = main(["perturb", str(study), str(table), "--out", str(out)])
        made = len(out.read_text().splitlines()) if out.exists() else None
        check_rows(name, rows, rows, code, capsys.readouterr().err, made)


def test_a_device_refuses_a_blank(tmp_path):
    device = Device(tmp_path, "9", require_consent=False)
    for answers in ({"hours": 3}, {"hours": 3, "ever": None}, {"hours": 3, "ever": True, "more": 1}, {}):
        with pytest.raises(AnswerError):
            device.answer(PEOPLE, answers)
    assert list(device.ledger.queued()) == []


def write(path, reports):
    """Write reports in the form that the file's suffix says, and return its bytes."""
    path.unlink(missing_ok=True)
    if path.suffix == ".ndjson":
        path.write_text("".join(f"{report.to_json()}\n" for report in reports))
    else:
        write_columns(reports, path)
    return path.read_bytes()


def files_of(folder, suffix):
    """Files of reports by what is odd about them, their rows in all, and of how many people they are."""
    few, late, foreign = reports_of(PEOPLE, 6 * MAN), reports_of(NEWER, 2 * MAN), reports_of(FOREIGN, MAN)
    other = Report(few[0].id, "survey", 1, PEOPLE.digest, few[1].payloads | {"ever": b"\7"})
    path, overlapping = folder / f"reports.{suffix}", folder / f"more.{suffix}"
    for name, reports in {
        "whole": few,
        "a duplicate": [*few, few[0], few[0]],
        "of another version": [*few, *late],
        "of another version and twice": [*few, *late, few[3]],
        "of another study": [*few, *foreign],
        "an impossible payload": [*few, other],
        "of other studies alone": foreign,
        "no reports": [],
    }.items():
        write(path, reports)
        people = {report.id for report in reports if report.digest == PEOPLE.digest}
        yield name, [path], len(reports), len(people)
    whole = write(path, few)
    write(overlapping, [*few[4:], *reports_of(PEOPLE, 3 * MAN)])
    yield "two files that overlap", [path, overlapping], 11, 9
    contents = {
        "nothing": b"",
        "cut off": whole[:-9],
        "half": whole[: len(whole) // 2 + 9],
        "a study": PEOPLE.to_json().encode(),
        "a table of answers": b"hours,ever\n3,yes\n",
    }
    if suffix == "ndjson":
        contents["damaged"] = whole + b"nonsense\n"
        contents["an end that counts more"] = whole + b'{"format":"ldpkit.export-end/1","reports":9}\n'
    for name, content in contents.items():
        path.write_bytes(content)
        yield name, [path], 6, 6


def check_summaries(folder, captured, suffix):
    """`summarize` loses no report; `fit` rejects the same files."""
    study, out = folder / "study.json", folder / "summary.json"
    study.write_text(PEOPLE.to_json())
    for name, files, rows, people in files_of(folder, suffix):
        out.unlink(missing_ok=True)
        code = main(["summarize", str(study), *map(str, files), "--out", str(out)])
        counts = [None]
        if out.exists():
            counts = [part["n"] for part in json.loads(out.read_text())["questions"].values()]
        assert len(set(counts)) == 1
        check_rows(name, rows, people, code, captured.readouterr().err, counts[0])
        if code and suffix == "ndjson":
            assert main(["fit", str(study), *map(str, files), "--out", str(folder / "fit")]) == REFUSED
            assert not (folder / "fit").exists()
            captured.readouterr()


@pytest.mark.parametrize("suffix", ["ndjson", "csv", "parquet"])
def test_a_file_of_reports_loses_none(tmp_path, capsys, suffix):
    check_summaries(tmp_path, capsys, suffix)


def test_a_planted_reader_that_skips_bad_lines_is_found(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reading.Findings, "refuse_bad", lambda _found: None)
    with pytest.raises(AssertionError):
        check_summaries(tmp_path, capsys, "ndjson")
