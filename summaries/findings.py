"""Findings of readers: how many reports count, and which cannot belong to the study."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping

from ldp_client.documents.errors import InputError
from schemas import Report, Study
from summaries.summary import Summary

SHOWN = 3
# The most other study documents that files may mention: one study has only a few versions.
MOST_DOCUMENTS = 1000


class Findings:
    """Findings in some of the reports, in bounded memory; findings of different reports add up.

    Args:
        study: the document that the reports should answer.

    Attributes:
        good: how many count.
        repeated: how many were repeated.
        refused: how many cannot belong to the study.
        read: how many rows of columns were read.
        versions: reports on the study's other versions, which are left out: {(version, digest): how many}.
        summary: of the reports that count, if they were reduced.
    """

    def __init__(self, study: Study) -> None:
        self.good = self.repeated = self.refused = self.read = 0
        self.versions: Counter[tuple[int, str]] = Counter()
        self.summary: Summary | None = None
        self._id, self._version, self._digest = study.id, study.version, study.digest
        self._documents: Counter[str] = Counter()
        self._foreign = 0
        self._first: list[tuple[int, str]] = []

    @property
    def shown(self) -> list[str]:
        """Return why the first few reports are refused, in the order of their places."""
        return [why for _, why in self._first]

    def refuse(self, why: str, place: int | None = None) -> None:
        """Count a report that cannot belong to the study. place: its number among all; None for the next."""
        self._show([(self.refused if place is None else place, why)])
        self.refused += 1

    def is_other(self, report: Report, where: str, place: int | None = None) -> bool:
        """Count the report if it answers another document, and return whether it does.

        It is left out if it answers another version of the study, and refused otherwise. Raises InputError if
        reports answer more documents than any study has.
        """
        if report.digest == self._digest:
            return False
        document = f"{report.study} version {report.version} with digest {report.digest}"
        self._documents[document] += 1
        self._refuse_many_documents(where, document)
        if report.study == self._id and report.version != self._version:
            self.versions[report.version, report.digest] += 1
        else:
            self._foreign += 1
            self.refuse(f"{where}: it answers another study document, {document}", place)
        return True

    def merge(self, other: Findings) -> None:
        """Add what another worker found in other reports. Raises InputError as `is_other` does."""
        self.good += other.good
        self.repeated += other.repeated
        self.refused += other.refused
        self.read += other.read
        self.versions.update(other.versions)
        self._foreign += other._foreign
        self._show(other._first)
        self._documents.update(other._documents)
        if self._documents:
            self._refuse_many_documents("all files", next(reversed(self._documents)))
        if other.summary is not None:
            self.summary = other.summary if self.summary is None else self.summary.merge(other.summary)

    def refuse_bad(self) -> None:
        """Raise InputError if a report was refused, or if there were reports but none on the document."""
        if self._documents and self.good + self.repeated + self.refused == self._foreign:
            wanted = f"{self._id} version {self._version} with digest {self._digest}"
            answered = [
                f"{count} answer {document}" for document, count in self._documents.most_common(SHOWN)
            ]
            raise InputError(
                f"no report answers {wanted}: {', '.join(answered)}. Use the study file with that digest",
                code="reports.none_of_study",
            )
        if self.refused:
            total = self.good + self.repeated + self.refused + self.versions.total()
            raise InputError(
                f"{self.refused} of {total} reports cannot belong to this study: {'; '.join(self.shown)}",
                code="reports.many_refused",
            )

    def print_notes(self, versions: Mapping[tuple[int, str], int]) -> None:
        """Print on standard error how many reports were repeated, and how many left out."""
        if self.repeated:
            print(f"{self.repeated} reports were repeated and counted once", file=sys.stderr)
        for line in left_out_notes(versions):
            print(line, file=sys.stderr)

    def _show(self, more: list[tuple[int, str]]) -> None:
        self._first = sorted([*self._first, *more])[:SHOWN]

    def _refuse_many_documents(self, where: str, last: str) -> None:
        if len(self._documents) > MOST_DOCUMENTS:
            raise InputError(
                f"{where}: up to here reports answer more than {MOST_DOCUMENTS} study documents, the last "
                f"{last}: these are no reports of one study",
                code="reports.of_many_studies",
            )


def left_out_notes(left: Mapping[tuple[int, str], int]) -> tuple[str, ...]:
    """Notes for readers of a result on reports that were left out: {(version, digest): how many}."""
    if not left:
        return ()
    count = sum(left.values())
    reports, verb = ("1 report answers", "was") if count == 1 else (f"{count} reports answer", "were")
    which = ", ".join([f"version {version}" for version in sorted({version for version, _ in left})])
    return (
        f"{reports} other versions of the study ({which}) and {verb} left out: fit those with the study "
        "file of their version",
    )
