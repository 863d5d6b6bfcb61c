"""Messages about reports that do not belong to a study: all are counted, a few shown, for every reader."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping

from ldp_client.documents.errors import InputError
from schemas import Report, Study

SHOWN = 3
# The most other study documents that files may mention: one study has only a few versions.
MOST_DOCUMENTS = 1000


class Refused:
    """Refused reports in bounded memory: their count, and the reasons for the first few."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, str]] = []

    @property
    def shown(self) -> list[str]:
        """Return the reasons for the first few, in the order of their places."""
        return [why for _, why in self._first[:SHOWN]]

    def add(self, why: str, place: int | None = None, many: int = 1) -> None:
        """Count one more report, or `many` refused for the same reason. place: among all, or the next."""
        self._keep([(self.count if place is None else place, why)])
        self.count += many

    def merge(self, other: Refused) -> None:
        """Add the reports that were refused elsewhere, at other places of the same reading."""
        self._keep(other._first)
        self.count += other.count

    def _keep(self, more: list[tuple[int, str]]) -> None:
        self._first = sorted([*self._first, *more])[:SHOWN]


class Others:
    """Reports on documents other than the study's.

    versions: {(version, digest): count} of its other versions, which may be left out. foreign: reports on
    another study, or on another document of the same version.
    """

    def __init__(self, study: Study) -> None:
        self.versions: Counter[tuple[int, str]] = Counter()
        self.foreign = Refused()
        self._id, self._version, self._digest = study.id, study.version, study.digest
        self._documents: Counter[str] = Counter()

    def hold(self, report: Report, where: str, place: int | None = None, many: int = 1) -> bool:
        """Count the report if it answers another document; return whether it does.

        place: as for `Refused.add`. many: how many such reports there are. Raises InputError if reports
        answer more documents than any study has.
        """
        if report.digest == self._digest:
            return False
        document = f"{report.study} version {report.version} with digest {report.digest}"
        self._documents[document] += many
        self._refuse_many(where, document)
        if report.study == self._id and report.version != self._version:
            self.versions[report.version, report.digest] += many
        else:
            self.foreign.add(f"{where}: it answers another study document, {document}", place, many)
        return True

    def merge(self, other: Others) -> None:
        """Add the reports that another worker met. Raises InputError as `hold` does."""
        self.versions.update(other.versions)
        self.foreign.merge(other.foreign)
        self._documents.update(other._documents)
        if self._documents:
            self._refuse_many("all files", next(reversed(self._documents)))

    def _refuse_many(self, where: str, last: str) -> None:
        if len(self._documents) > MOST_DOCUMENTS:
            raise InputError(
                f"{where}: up to here reports answer more than {MOST_DOCUMENTS} study documents, the last "
                f"{last}: these are no reports of one study",
                code="reports.of_many_studies",
            )

    def refuse_all(self, rest: int) -> None:
        """Raise InputError if all reports are in here. rest: how many reports are not."""
        if rest or not self._documents:
            return
        own = f"{self._id} version {self._version} with digest {self._digest}"
        seen = [f"{count} answer {document}" for document, count in self._documents.most_common()]
        raise InputError(
            f"no report answers {own}: {', '.join(seen[:SHOWN])}. Use the study file with that digest",
            code="reports.none_of_study",
        )


def refuse_bad(good: int, repeated: int, bad: Refused, others: Others) -> None:
    """Raise InputError if any report was bad, or if there were reports but none on the study's document."""
    others.refuse_all(good + repeated + bad.count)
    refused = bad.count + others.foreign.count
    if refused:
        shown = "; ".join([*bad.shown, *others.foreign.shown][:SHOWN])
        total = good + repeated + refused + others.versions.total()
        raise InputError(
            f"{refused} of {total} reports cannot belong to this study: {shown}", code="reports.many_refused"
        )


def left_out_notes(left: Mapping[tuple[int, str], int]) -> tuple[str, ...]:
    """Notes for readers of a result on reports that were left out: {(version, digest): how many}."""
    if not left:
        return ()
    count = sum(left.values())
    said = "1 report answers" if count == 1 else f"{count} reports answer"
    which = ", ".join([f"version {version}" for version in sorted({version for version, _ in left})])
    verb = "was" if count == 1 else "were"
    return (
        f"{said} other versions of the study ({which}) and {verb} left out: fit those with the study "
        "file of their version",
    )


def tell_repeated(count: int) -> None:
    """Print on standard error how many reports were repeated."""
    if count:
        print(f"{count} reports were repeated and counted once", file=sys.stderr)
