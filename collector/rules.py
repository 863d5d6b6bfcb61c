"""What a published version of a study demands of its reports."""

from __future__ import annotations

from dataclasses import dataclass

from collector import queries
from collector.database import Database
from collector.packing import Layout, PackedReport
from ldp_client import Mechanism, mechanism_for
from schemas import Report, Study
from schemas.errors import LdpkitError, ReportError


class UnknownVersionError(LdpkitError):
    """No such version of a study is published."""


@dataclass(frozen=True)
class Rules:
    """One version of a study with its mechanisms, ready to check, pack and unpack reports."""

    study: Study
    mechanisms: dict[str, Mechanism]
    layout: Layout

    @classmethod
    def of(cls, study: Study) -> Rules:
        """Build the mechanisms. Raises StudyError when one cannot be built."""
        mechanisms = {question.id: mechanism_for(question) for question in study.questions}
        sizes = [(question_id, mechanism.payload_size) for question_id, mechanism in mechanisms.items()]
        return cls(study, mechanisms, Layout(sizes))

    def pack(self, report: Report) -> PackedReport:
        """Check a report and pack it. Raises ReportError when no device could have sent it."""
        if report.digest != self.study.digest:
            raise ReportError("digest", f"version {self.study.version} of the study has another digest")
        self._check_questions(report)
        for question_id, mechanism in self.mechanisms.items():
            mechanism.check(report.payloads[question_id])
        return PackedReport(bytes.fromhex(report.id), report.version, self.layout.pack(report.payloads))

    def unpack(self, packed: PackedReport) -> Report:
        """The report that was packed."""
        payloads = self.layout.unpack(packed.payloads)
        return Report(packed.id.hex(), self.study.id, packed.version, self.study.digest, payloads)

    def _check_questions(self, report: Report) -> None:
        for question_id in sorted(self.mechanisms.keys() - report.payloads.keys()):
            raise ReportError(f"payloads.{question_id}", "is missing")
        for question_id in sorted(report.payloads.keys() - self.mechanisms.keys()):
            raise ReportError(f"payloads.{question_id}", "the study has no such question")


class RuleBook:
    """The rules of every version in use, built once in a process: calibration takes milliseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: dict[tuple[str, int], Rules] = {}

    def find(self, study_id: str, version: int) -> Rules:
        """The rules of one published version. Raises UnknownVersionError."""
        key = (study_id, version)
        if key not in self._rules:
            with self._database.read() as session:
                canonical = queries.canonical_bytes(session, study_id, version)
            if canonical is None:
                raise UnknownVersionError(f"study {study_id!r} has no version {version}")
            self._rules[key] = Rules.of(Study.from_json(canonical))
        return self._rules[key]
