"""The findings of one worker, and how the findings of all add up to a summary or to errors."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ldp_client import Mechanism
from ldp_client.documents.errors import InputError, LdpkitError, SummaryError, TransferError
from ldp_client.words.text import counted
from schemas import Study
from summaries.reductions import REDUCTIONS
from summaries.refusing import Others, Refused, left_out_notes, refuse_bad, tell_repeated
from summaries.summary import NEEDS_REPORTS, Summary

# The most damaged files that an error names.
MOST_NAMED = 20
# The limit over all workers; a larger table would have a row for almost every report.
MOST_DISTINCT = 1 << 20


@dataclass
class Part:
    """The findings in some of the reports; findings of different reports add up.

    Attributes:
        bad: reports that are refused.
        others: reports on other documents.
        good: how many count.
        repeated: how many were repeated.
        read: how many rows were read.
        damaged: the damage of files, by their numbers: an error's code, and its words.
        is_away: whether a store could not be reached: its other files were not asked for.
        span: for files that should have one bucket's reports, {bucket: (lowest, highest id)}, of half an id.
        summary: of the reports that count.
        counts: if equal reports were counted, {public places and payloads: how many}.
    """

    bad: Refused
    others: Others
    good: int = 0
    repeated: int = 0
    read: int = 0
    damaged: dict[int, tuple[str, str]] = field(default_factory=dict)
    is_away: bool = False
    span: dict[int, tuple[int, int]] = field(default_factory=dict)
    summary: Summary | None = None
    counts: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, study: Study) -> Part:
        """Return the findings of no reports."""
        return cls(Refused(), Others(study))

    def note_span(self, bucket: int, low: int, high: int) -> None:
        """Note that a bucket has reports between these ids."""
        lowest, highest = self.span.get(bucket, (low, high))
        self.span[bucket] = (min(low, lowest), max(high, highest))

    def merge(self, other: Part) -> None:
        """Add the findings of another worker. Raises InputError for too many different reports."""
        self.bad.merge(other.bad)
        self.others.merge(other.others)
        self.good += other.good
        self.repeated += other.repeated
        self.read += other.read
        self.damaged.update(other.damaged)
        self.is_away |= other.is_away
        for bucket, ends in other.span.items():
            self.note_span(bucket, *ends)
        if other.summary is not None:
            self.summary = other.summary if self.summary is None else self.summary.merge(other.summary)
        for key, many in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + many
        refuse_many(self.counts)


def merged(
    study: Study, parts: Iterable[Part], left_out: Mapping[tuple[int, str], int] | None = None
) -> Part:
    """Add up the findings of all workers, with notes for readers.

    left_out: reports on other versions, which were not read. Raises InputError for damaged files, for refused
    reports, and if none answers the study; TransferError if a store could not be reached.
    """
    whole = Part.empty(study)
    whole.others.versions.update(left_out or {})
    for part in parts:
        whole.merge(part)
    _refuse_damaged(whole.damaged, TransferError if whole.is_away else InputError)
    _refuse_overlap(whole.span)
    refuse_bad(whole.good, whole.repeated, whole.bad, whole.others)
    if not whole.good:
        raise InputError(
            f"there are no reports on version {study.version} of {study.id}", code="reports.none_of_version"
        )
    tell_repeated(whole.repeated)
    for line in left_out_notes(whole.others.versions):
        print(line, file=sys.stderr)
    return whole


def _refuse_damaged(damaged: Mapping[int, tuple[str, str]], kind: type[LdpkitError]) -> None:
    """Raise an error of this kind that names the files, with the first one's code."""
    if not damaged:
        return
    code = damaged[min(damaged)][0]
    said = [damaged[number][1] for number in sorted(damaged)]
    if len(said) == 1:
        raise kind(said[0], code=code)
    more = f"; and {counted(len(said) - MOST_NAMED, 'other')}" if len(said) > MOST_NAMED else ""
    raise kind(f"{len(said)} files cannot be read: {'; '.join(said[:MOST_NAMED])}{more}", code=code)


def _refuse_overlap(span: Mapping[int, tuple[int, int]]) -> None:
    """Raise InputError if files of different buckets may have the same report."""
    ordered = sorted((low, high, bucket) for bucket, (low, high) in span.items())
    for (_, high, before), (low, _, bucket) in itertools.pairwise(ordered):
        if low <= high:
            raise InputError(
                f"files of parts {before:02x} and {bucket:02x} have ids that begin alike, so that both may "
                "have the same report: this is no export's layout, name its files instead",
                code="merge.parts_overlap",
            )


def refuse_kept_reports(mechanisms: Mapping[str, Mechanism]) -> None:
    """Raise SummaryError if a posterior needs the reports themselves, which no summary has."""
    for name, mechanism in mechanisms.items():
        if REDUCTIONS[mechanism.name].keeps_reports(mechanism):
            raise SummaryError(f"questions.{name}", NEEDS_REPORTS, code="summary.needs_reports")


def refuse_many(counts: Mapping[bytes, int]) -> None:
    """Raise InputError if there are too many different reports to count."""
    if len(counts) > MOST_DISTINCT:
        raise InputError(
            f"more than {MOST_DISTINCT:,} different reports: a number, or a choice under a mechanism whose "
            "reports hardly ever repeat, cannot be counted so; leave it out",
            code="engine.too_many_distinct",
        )
