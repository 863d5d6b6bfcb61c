"""Tables of answers and files of reports that are whole, or damaged in one way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from schemas import Report, Study
from tests import studies
from tests.kit.tables import write_columns

PEOPLE = Study(studies.document(studies.NUMBER, studies.YES_NO))
NEWER = Study({**PEOPLE.document, "version": 2})
FOREIGN = Study({**PEOPLE.document, "id": "other"})
HEAD, ROW = "hours,ever", "3,yes"
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


def reports_of(study: Study, count: int) -> list[Report]:
    """Reports of so many people."""
    mechanisms = mechanisms_of(study)
    return [perturb_answers(study, mechanisms, {"hours": 3, "ever": True}) for _ in range(count)]


def write(path: Path, reports: Sequence[Report]) -> bytes:
    """Write reports in the form that the file's suffix says, and return its bytes."""
    if path.suffix == ".ndjson":
        path.write_text("".join(f"{report.to_json()}\n" for report in reports))
    else:
        path.unlink(missing_ok=True)
        write_columns(reports, path)
    return path.read_bytes()


def files_of(folder: Path, suffix: str) -> Iterator[tuple[str, list[Path], int, int]]:
    """Files of reports by what is odd about them, their rows in all, and of how many people they are."""
    few, late, foreign = reports_of(PEOPLE, 6), reports_of(NEWER, 2), reports_of(FOREIGN, 1)
    other = Report(few[0].id, "survey", 1, PEOPLE.digest, few[1].payloads | {"ever": b"\7"})
    path = folder / f"reports.{suffix}"
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
        yield (
            name,
            [path],
            len(reports),
            len({report.id for report in reports if report.digest == PEOPLE.digest}),
        )
    whole = write(path, few)
    for name, content in {
        "nothing": b"",
        "cut off": whole[:-9],
        "half": whole[: len(whole) // 2 + 9],
    }.items():
        path.write_bytes(content)
        yield name, [path], 6, 6
    path.write_bytes(whole)
    overlapping = folder / f"more.{suffix}"
    write(overlapping, [*few[4:], *reports_of(PEOPLE, 3)])
    yield "two files that overlap", [path, overlapping], 11, 9
    path.write_text(PEOPLE.to_json())
    yield "a study", [path], 1, 0
    path.write_text("hours,ever\n3,yes\n")
    yield "a table of answers", [path], 1, 0
    if suffix == "ndjson":
        ends = {
            "damaged": b"nonsense\n",
            "an end that counts more": b'{"format":"ldpkit.export-end/1","reports":9}\n',
        }
        for name, end in ends.items():
            path.write_bytes(whole + end)
            yield name, [path], 7, 6
