"""Reducing reports to a summary, in one pass and bounded memory."""

import sqlite3
from collections.abc import Iterable, Mapping
from itertools import islice
from os import PathLike
from typing import cast

from ldp_client import Mechanism
from ldp_client.documents.errors import InputError, ReportError
from schemas import Report, Study
from schemas.study import load_study
from summaries.rows import Reducer
from summaries.summary import Summary

CHUNK = 8192
# Pages of the table of ids that stay in memory; a report whose page is not there costs 10 µs more.
CACHE_KIB = 1 << 17


def reduce_reports(study: Study, reports: Iterable[Report], by_cell: bool | None = None) -> Summary:
    """Return the summary of checked reports (see summaries.reading.ReadReports), in bounded memory.

    by_cell: whether it has a part for each cell; by default if the study has few (summaries.cells).
    """
    reducer, rest = Reducer(study, by_cell), iter(reports)
    while chunk := list(islice(rest, CHUNK)):
        reducer.add(reducer.layout.rows_of(enumerate(chunk)))
    return reducer.summary()


class Seen:
    """The ids of earlier reports, with a digest of their content, in bounded memory.

    They are in SQLite's own temporary file, which is deleted with this object.
    """

    def __init__(self) -> None:
        # SQLite makes the file when there are more ids than its cache holds.
        self._ids = sqlite3.connect("", check_same_thread=False)
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KIB}"):
            self._ids.execute(f"PRAGMA {setting}")
        self._ids.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, content INTEGER) WITHOUT ROWID")

    def holds(self, report: Report) -> bool:
        """Tell whether the same report came before.

        Raises:
            ReportError: its id came with other content.
            InputError: there is no room for the ids in the folder for temporary files.
        """
        try:
            key = bytes.fromhex(report.id)
        except (TypeError, ValueError):
            raise ReportError("id", "must be 32 hexadecimal digits", code="report.wrong_id") from None
        content = hash((tuple(sorted(report.payloads.items())), tuple(sorted(report.public.items()))))
        try:
            if self._ids.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, content)).rowcount:
                return False
            (before,) = self._ids.execute("SELECT content FROM seen WHERE id = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise InputError(
                f"the ids of so many reports need room in the folder for temporary files ({error}): make "
                "room, or set SQLITE_TMPDIR to a folder that has some",
                code="reports.no_room_for_ids",
            ) from None
        if before != content:
            raise ReportError(
                "id", f"{report.id} stands twice with different content", code="report.duplicate_id"
            )
        return True


def study_of(given: object) -> Study:
    """Return a study, or the study in the file of this path. Raises InputError."""
    if isinstance(given, str | PathLike):
        return load_study(str(given))
    check_study(given)
    return cast(Study, given)


def check_study(study: object) -> None:
    """Raise an error for anything but a Study, with advice.

    Args:
        study: what was given as a study.

    Raises:
        InputError: it is something else, such as a document's text or a path.
    """
    if not isinstance(study, Study):
        raise InputError(
            f"the study must be a schemas.Study, is a {type(study).__module__}.{type(study).__name__}: "
            "ldpkit.Study.from_json reads a document's text, such as study.to_json()",
            code="reports.study_not_a_study",
        )


def check_report(study: Study, mechanisms: Mapping[str, Mechanism], report: Report) -> None:
    """Refuse a report that a device could not have sent in answer to this document.

    Args:
        study: the document.
        mechanisms: its mechanisms by question, as `mechanisms_of(study)` gives them.
        report: the report.

    Raises:
        ReportError: the report answers another document, has other questions, an impossible payload, or
            public values that the study does not list.
    """
    if report.digest != study.digest:
        raise ReportError("digest", "the report answers another study document", code="report.other_study")
    if report.version != study.version or report.study != study.id:
        raise ReportError(
            "version",
            f"the digest belongs to {study.id}, version {study.version}, and no other",
            code="report.wrong_version",
        )
    wrong = study.wrong_payload(report.payloads)
    if wrong:
        raise ReportError(f"payloads.{wrong[0]}", wrong[1], code="report.payload_invalid")
    wrong = study.wrong_public(report.public)
    if wrong:
        raise ReportError(f"public.{wrong[0]}", wrong[1], code="report.public_invalid")
    for name, payload in report.payloads.items():
        mechanisms[name].check(payload)
