"""What a published version of a study demands of its reports."""

from __future__ import annotations

from dataclasses import dataclass

from collector.reports.canonical_form import Form, form_of
from collector.reports.tally import Tally
from collector.storage import queries
from collector.storage.database import Database
from collector.storage.packing import Layout, PackedReport, layout_of
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import LdpkitError, ReportError
from schemas import Report, Study


class UnknownVersionError(LdpkitError):
    """No such version of a study is published."""


@dataclass(frozen=True, eq=False)
class Rules:
    """One version of a study with its mechanisms, ready to check, pack, count and write reports."""

    study: Study
    mechanisms: dict[str, Mechanism]
    layout: Layout
    form: Form
    tally: Tally

    @classmethod
    def of(cls, study: Study) -> Rules:
        """Build the mechanisms. Raises StudyError when one cannot be built."""
        mechanisms = {question.id: mechanism_for(question) for question in study.questions}
        layout = layout_of(study, {name: mechanism.payload_size for name, mechanism in mechanisms.items()})
        form = form_of(study, layout, {name: mechanism.check for name, mechanism in mechanisms.items()})
        return cls(study, mechanisms, layout, form, Tally(study, mechanisms, layout))

    def pack(self, report: Report) -> PackedReport:
        """Check a report and pack it. Raises ReportError when no device could have sent it."""
        if report.digest != self.study.digest:
            raise ReportError("digest", f"version {self.study.version} of the study has another digest")
        wrong = self.study.wrong_payload(report.payloads)
        if wrong:
            raise ReportError(f"payloads.{wrong[0]}", wrong[1])
        for question_id, payload in report.payloads.items():
            self.mechanisms[question_id].check(payload)
        return PackedReport(bytes.fromhex(report.id), report.version, self.layout.pack(report.payloads))


class RuleBook:
    """The rules of every version in use, built once in a process: calibration takes milliseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: dict[tuple[str, int], Rules] = {}
        self._by_digest: dict[tuple[str, bytes], Rules] = {}

    def find(self, study_id: str, version: int, reserved: bool = False) -> Rules:
        """The rules of one published version. Raises UnknownVersionError.

        reserved: see Database.read.
        """
        found = self._rules.get((study_id, version))
        return found or self._load(study_id, version, reserved)

    def find_in_use(self, study_id: str, digest: bytes) -> Rules | None:
        """The rules of a version by its digest in hexadecimal, if `find` has found them before."""
        return self._by_digest.get((study_id, digest))

    def _load(self, study_id: str, version: int, reserved: bool) -> Rules:
        with self._database.read(reserved) as session:
            canonical = queries.canonical_bytes(session, study_id, version)
        if canonical is None:
            raise UnknownVersionError(f"study {study_id!r} has no version {version}")
        rules = Rules.of(Study.from_json(canonical))
        self._rules[(study_id, version)] = rules
        self._by_digest[(study_id, rules.study.digest.encode())] = rules
        return rules
