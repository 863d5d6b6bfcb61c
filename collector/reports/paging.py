"""Exports: every stored report of a study, page by page, in the order of the random ids.

Each page is read in a short transaction of its own, so that SQLite's write-ahead log stays small
however slow the reader is. A report acknowledged before the export began is in it exactly once,
unless it is withdrawn meanwhile; one that arrives meanwhile may be. With `through`, a day that is
over, the contents are fixed but for withdrawals. Where reports are deleted meanwhile otherwise, as their
time is over, it breaks off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from collector.problems import broken_off, deleted_reports, unknown_study
from collector.reports.rules import Rules, require_same
from collector.storage import queries
from collector.storage.database import Database

if TYPE_CHECKING:
    from collector.context import Collector

PAGE_REPORTS = 10_000
PAGE_BYTES = 4 << 20

# Of a dated export the day stands behind each row.
Page = list[queries.StoredRow]


@dataclass(frozen=True)
class Export:
    """One export. rules: of every version that its reports may answer. pages: never empty ones.

    number: the study's key. deletions: the study's count of them, which ends the export when it rises.
    """

    study: str
    number: int
    rules: Mapping[int, Rules]
    pages: Iterator[Page]
    deletions: int

    @property
    def questions(self) -> list[str]:
        """Every question of every version, by name."""
        return sorted({name for rules in self.rules.values() for name in rules.mechanisms})

    @property
    def public(self) -> list[str]:
        """Every public field of every version, by name."""
        return sorted({field.id for rules in self.rules.values() for field in rules.study.public})


def open_export(
    collector: Collector,
    study_id: str,
    after: bytes = b"",
    through: date | None = None,
    *,
    dated: bool = False,
    deletions: int | None = None,
) -> Export:
    """The reports with ids above `after` that came on or before `through`. dated: with their days.

    deletions: of the export that this one goes on with, None for none. Raises ProblemError for a study that
    is not published, or whose reports are deleted; reading on does too, where they were since, or
    some of them: what is left would pass for all of them.
    """
    with collector.database.read() as session:
        study = queries.study_state(session, study_id)
        digests = {} if study is None else queries.document_digests(session, study.number)
    if study is None:
        raise unknown_study(study_id)
    refuse_gone(study, study_id)
    if deletions not in (None, study.deletions):
        raise broken_off(study_id)
    rules = {version: collector.rules.find(study_id, version) for version in sorted(digests)}
    require_same(digests, rules.values())
    following = Following(collector.database, study_id, study.number, study.deletions)
    return Export(
        study_id, study.number, rules, _pages(following, rules, after, through, dated), study.deletions
    )


def refuse_gone(study: queries.StudyState, study_id: str) -> None:
    """Raises ProblemError for a study whose reports are not here any more."""
    if study.deleted:
        raise deleted_reports(study_id)


def page_limit(rules: Iterable[Rules]) -> int:
    """How many reports to hold at once, whatever version they answer."""
    return max(1, min(PAGE_REPORTS, PAGE_BYTES // max(one.layout.size for one in rules)))


class Following(NamedTuple):
    """A study that is being exported, and its number. deletions: its count of them when that began."""

    database: Database
    study: str
    number: int
    deletions: int


def _pages(
    following: Following,
    rules: Mapping[int, Rules],
    after: bytes,
    through: date | None,
    dated: bool,
) -> Iterator[Page]:
    limit = page_limit(rules.values())
    while True:
        with following.database.read() as session:
            page = queries.report_page(session, following.number, max(rules), after, through, limit, dated)
            # Behind the page: PostgreSQL shows each statement what was committed before it.
            study = queries.study_state(session, following.study)
            assert study is not None
        refuse_gone(study, following.study)
        if study.deletions != following.deletions:
            raise broken_off(following.study)
        if not page:
            return
        yield page
        after = page[-1][0]
