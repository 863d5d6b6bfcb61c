"""Reducing reports to a summary, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from os import PathLike

import numpy as np

from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError, ReportError
from schemas import Report, Study
from summaries.summary import QuestionSummary, Summary

CHUNK = 8192


def summarize(study: Study, reports: Iterable[Report]) -> Summary:
    """Reduce reports to a summary, in one pass and bounded memory.

    Raises InputError for what is no Study or no reports, ReportError for a report of another study document,
    one with other questions, or one that no device could have sent.
    """
    check_study(study)
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    summary = Summary.empty(study)
    stream = only_reports(reports)
    while chunk := list(islice(stream, CHUNK)):
        for report in chunk:
            check_report(study, mechanisms, report)
        summary = summary.merge(_summarize_chunk(study, mechanisms, chunk))
    return summary


def check_study(study: object) -> None:
    """Raises InputError for what is no Study, and says how to get one."""
    if not isinstance(study, Study):
        raise InputError(
            f"the study must be a Study, is a {type(study).__name__}: Study.from_json(text) reads a "
            "document's text, ldp_client.files.studies.load_study(path) a file"
        )


def only_reports(reports: object) -> Iterator[Report]:
    """The same reports. Raises InputError, as soon as it is called, for what cannot be a series of them.

    An entry that is no Report raises it in its turn.
    """
    wanted = f"reports must be a series of Report, or a Summary, not a {type(reports).__name__}"
    if isinstance(reports, str | bytes | PathLike):
        raise InputError(f"{wanted}: summaries.reading.load_evidence(study, path) reads a file")
    if isinstance(reports, Report | Mapping) or not isinstance(reports, Iterable):
        raise InputError(f"{wanted}: give a list of them")
    return _each_a_report(reports, wanted)


def _each_a_report(reports: Iterable[object], wanted: str) -> Iterator[Report]:
    for number, report in enumerate(reports, 1):
        if not isinstance(report, Report):
            raise InputError(
                f"{wanted}: entry {number} is a {type(report).__name__}. Report.from_json(line) reads a "
                "report; answers without noise are no reports"
            )
        yield report


def check_report(study: Study, mechanisms: Mapping[str, Mechanism], report: Report) -> None:
    """Raises ReportError unless some device could have sent this report in answer to this document."""
    if report.digest != study.digest:
        raise ReportError("digest", "the report answers another study document")
    wrong = study.wrong_payload(report.payloads)
    if wrong:
        raise ReportError(f"payloads.{wrong[0]}", wrong[1])
    for name, payload in report.payloads.items():
        mechanisms[name].check(payload)


def _summarize_chunk(study: Study, mechanisms: Mapping[str, Mechanism], chunk: list[Report]) -> Summary:
    questions = {}
    for name, mechanism in mechanisms.items():
        found = [report.payloads[name] for report in chunk if name in report.payloads]
        payloads = np.frombuffer(b"".join(found), dtype=np.uint8)
        questions[name] = QuestionSummary.of(mechanism, payloads.reshape(len(found), mechanism.payload_size))
    return Summary(study.id, study.version, study.digest, questions)
