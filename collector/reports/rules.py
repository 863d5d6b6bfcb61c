"""Requirements of a published version for its reports, and the share of each report in the version's sums.

The sums of a version are one vector. For each question, in the study's order, it has how many reports answer
it, the values of its reduction (summaries.reductions), and how many are far out, if its noise has a law for
that (summaries.noise_tails). If summaries are kept by cell (summaries.cells), the vector has all this for
each cell, in the order of their numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from collector import store
from collector.db import Database
from collector.limiter import log_throttled
from collector.problems import UNAVAILABLE, ProblemError
from collector.reports.packing import CanonicalForm, Layout, OneQuestionLayout, PublicPlaces
from collector.store import PackedReport, StudyState
from collector.tickets.redeem import BlindCheck
from ldp_client import mechanisms_of
from ldp_client.documents.errors import EXIT_REFUSED, LdpkitError, ReportError
from schemas import Report, Study
from summaries import QuestionSummary, Summary, noise_tails
from summaries.cells import cell_at, keeps_cells
from summaries.reductions import REDUCTIONS

Sums = NDArray[np.int64]
# Sums are read and written with every commit, in 64 KiB at most.
MOST_KEPT = 1 << 13
# Counting a report may not cost more than the rest of its processing: a hash costs 40 to 100 ns.
MOST_KEPT_HASHES = 128


class ReportCounter:
    """How reports of one version become sums.

    size: the number of sums. needs_reports: questions whose posteriors need the reports themselves, so that
    there is no summary. is_kept: whether sums are updated as reports arrive: they are few, cheap and add up.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules, study, mechanisms = rules, rules.study, rules.mechanisms
        values = [REDUCTIONS[one.name].size(one) for one in mechanisms.values()]
        tails = [noise_tails.SIZE if noise_tails.has_tails(one) else 0 for one in mechanisms.values()]
        ends = np.cumsum([size for pair in zip(values, tails) for size in (1 + pair[0], pair[1])])
        self._cells = study.cells if keeps_cells(study) else 0
        self._cell_size = int(ends[-1])
        self.size = self._cell_size * max(self._cells, 1)
        self.needs_reports = [n for n, one in mechanisms.items() if REDUCTIONS[one.name].keeps_reports(one)]
        hashes = sum(REDUCTIONS[one.name].hashes(one) for one in mechanisms.values())
        is_cheap = self.size <= MOST_KEPT and hashes <= MOST_KEPT_HASHES
        self.is_kept = is_cheap and not self.needs_reports and study.protocol is None
        self._ends = ends[:-1]

    def count(self, payloads: Sequence[bytes]) -> Sums:
        """Return the sums of reports, given as their packed payloads."""
        if not self._cells:
            return self._count(payloads)
        of_cell: dict[int, list[bytes]] = {}
        for cell, payload in zip(self._rules.public.cells(payloads).tolist(), payloads):
            of_cell.setdefault(cell, []).append(payload)
        sums = np.zeros((self._cells, self._cell_size), dtype=np.int64)
        for cell, some in of_cell.items():
            sums[cell] = self._count(some)
        return sums.reshape(-1)

    def _count(self, payloads: Sequence[bytes]) -> Sums:
        found = self._rules.layout.split(payloads)
        parts = []
        for name, mechanism in self._rules.mechanisms.items():
            values = REDUCTIONS[mechanism.name].reduce(mechanism, found[name])
            far = noise_tails.tails(mechanism, found[name])
            parts += [np.array([len(found[name])]), values, *([] if far is None else [far])]
        return np.concatenate(parts).astype(np.int64)

    def summary(self, sums: Sums) -> Summary:
        """Return the summary that belongs to these sums."""
        study = self._rules.study
        by_cell = sums.reshape(-1, self._cell_size)
        cells = None
        if self._cells:
            numbers = np.flatnonzero(by_cell.any(axis=1))
            cells = {cell_at(study, int(number)): self._questions(by_cell[number]) for number in numbers}
        total = self._questions(by_cell.sum(axis=0))
        return Summary(study.id, study.version, study.digest, total, cells)

    def _questions(self, sums: Sums) -> dict[str, QuestionSummary]:
        parts = np.split(sums, self._ends)
        return {
            name: QuestionSummary(int(part[0]), part[1:], tails=far if len(far) else None)
            for name, part, far in zip(self._rules.mechanisms, parts[::2], parts[1::2])
        }


class UnknownVersionError(LdpkitError):
    """This version of a study is not published."""

    exit_code = EXIT_REFUSED
    code = "study.version_unknown"


def kept_until(study: Study) -> date | None:
    """Return the last day of a version's reports. None if each has its own day, or none is stated."""
    days = study.retention_days
    if days is None or study.closes is None:
        return None
    closes = date.fromisoformat(study.closes)
    return closes + timedelta(days) if days <= (date.max - closes).days else date.max


class Rules:
    """One version of a study with its mechanisms, ready to check, pack, count and write reports.

    until: see kept_until. blind: the check of the tokens that blind tickets buy, None for a study without.
    Raises StudyError when a mechanism cannot be built.
    """

    def __init__(self, study: Study) -> None:
        self.study, self.mechanisms, self.public = study, mechanisms_of(study), PublicPlaces(study.public)
        sizes = [(name, mechanism.payload_size) for name, mechanism in self.mechanisms.items()]
        self.layout = (OneQuestionLayout if study.sample_one_question else Layout)(sizes, self.public.size)
        checks = {name: mechanism.check for name, mechanism in self.mechanisms.items()}
        self.form = CanonicalForm(study, self.layout, self.public, checks)
        self.tally = ReportCounter(self)
        self.opens = date.fromisoformat(study.opens) if study.opens else None
        self.closes = date.fromisoformat(study.closes) if study.closes else None
        self.until = kept_until(study)
        tickets = None if study.channel is None else study.channel.tickets
        self.blind = None if tickets is None else BlindCheck(study, tickets)

    def needs_ticket(self, study: StudyState) -> bool:
        """Return True if this version's reports need a ticket.

        They do if the operator demands it for all versions. If tickets carry values, the operator cannot
        lift the requirement.
        """
        return self.blind is not None or study.needs_tickets or self.public.is_ticketed

    def pack(self, report: Report) -> PackedReport:
        """Check a report and pack it. Raises ReportError when no device could have sent it."""
        if report.digest != self.study.digest:
            raise ReportError(
                "digest",
                f"version {self.study.version} of the study has another digest",
                code="report.other_digest",
            )
        wrong = self.study.wrong_payload(report.payloads)
        if wrong:
            raise ReportError(f"payloads.{wrong[0]}", wrong[1], code="report.payload_invalid")
        for question_id, payload in report.payloads.items():
            self.mechanisms[question_id].check(payload)
        wrong = self.study.wrong_public(report.public, invited=True)
        if wrong:
            raise ReportError(f"public.{wrong[0]}", wrong[1], code="report.public_invalid")
        packed = self.public.pack(report.public) + self.layout.pack(report.payloads)
        return PackedReport(bytes.fromhex(report.id), report.version, packed)


def require_same(published: Mapping[int, str], rules: Iterable[Rules]) -> None:
    """Raise ProblemError if a version's digest differs from the digest of its rules.

    Documents never change, so the database was replaced under this process: it would read reports wrongly.
    """
    for one in rules:
        if published.get(one.study.version) != one.study.digest:
            log_throttled(
                logging.ERROR,
                f"version {one.study.version} of study {one.study.id} is not the document that it was: "
                "the database was restored or replaced under this server, which has to be started again",
            )
            raise ProblemError(UNAVAILABLE, "the database was replaced; the server has to be started again")


# Of documents. Their rules take some five times as much memory.
MOST_BYTES = 1 << 25


class RuleBook:
    """The rules of the versions in use: finding the integers takes milliseconds.

    Documents of MOST_BYTES together are kept ready; one more, and the others are read again when they are
    used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: dict[tuple[str, int], Rules] = {}
        self._by_digest: dict[tuple[str, bytes], Rules] = {}
        self._studies: set[str] = set()
        self._bytes = 0
        self._lock = Lock()

    def find(self, study_id: str, version: int, reserved: bool = False) -> Rules:
        """Return the rules of one published version. Raises UnknownVersionError.

        reserved: see Database.read.
        """
        found = self._rules.get((study_id, version))
        if found is not None:
            return found
        with self._database.read(reserved) as session:
            document = store.find_document(session, study_id, version)
        if document is None:
            raise UnknownVersionError(f"study {study_id!r} has no version {version}")
        rules = Rules(Study.from_json(document.canonical))
        with self._lock:
            if self._bytes + len(document.canonical) > MOST_BYTES:
                self._rules.clear()
                self._by_digest.clear()
                self._bytes = 0
            self._rules[(study_id, version)] = rules
            self._by_digest[(study_id, rules.study.digest.encode())] = rules
            self._bytes += len(document.canonical)
            self._studies.add(study_id)
        return rules

    def knows(self, study_id: str) -> bool:
        """Return True if `find` has found a version of this study before."""
        return study_id in self._studies

    def find_in_use(self, study_id: str, digest: bytes) -> Rules | None:
        """Return the rules of a version by its digest in hexadecimal, if `find` has found them before."""
        return self._by_digest.get((study_id, digest))
