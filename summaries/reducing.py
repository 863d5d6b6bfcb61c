"""Reducing reports to a summary, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from os import PathLike

import numpy as np

from ldp_client import Mechanism, mechanisms_of
from ldp_client.documents.errors import InputError, ReportError
from schemas import Report, Study
from summaries.summary import QuestionSummary, Summary

CHUNK = 8192


def summarize(study: Study, reports: Iterable[Report], checked: bool = False) -> Summary:
    """Reduce reports to a summary, in one pass and bounded memory.

    Args:
        study: the document that the reports answer.
        reports: any series of them, read once.
        checked: whether each has passed `check_report` for this study, as those of
            `summaries.reading.ReportFiles` have; they are not checked again.

    Returns:
        The summary, equal whatever the order of the reports.

    Raises:
        InputError: the study is no Study, or the reports are no series of Report.
        ReportError: a report answers another study document, has other questions, or is one that no
            device could have sent.
    """
    check_study(study)
    mechanisms = mechanisms_of(study)
    summary = Summary.empty(study)
    stream = only_reports(reports)
    while chunk := list(islice(stream, CHUNK)):
        if not checked:
            for report in chunk:
                check_report(study, mechanisms, report)
        summary = summary.merge(_summarize_chunk(study, mechanisms, chunk))
    return summary


def check_study(study: object) -> None:
    """Refuse what is no Study, and say how to get one.

    Raises:
        InputError: it is something else, such as a document's text or a path.
    """
    if not isinstance(study, Study):
        raise InputError(
            f"the study must be a Study, is a {type(study).__name__}: Study.from_json(text) reads a "
            "document's text, ldp_client.files.studies.load_study(path) a file"
        )


def only_reports(reports: object) -> Iterator[Report]:
    """Pass a series of reports on, and refuse anything else at once.

    Returns:
        The same reports, one at a time.

    Raises:
        InputError: it cannot be a series of reports; for an entry that is no Report, when its turn comes.
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
    """Refuse a report that no device could have sent in answer to this document.

    Args:
        study: the document.
        mechanisms: its mechanisms by question, as `mechanisms_of(study)` gives them.
        report: the report.

    Raises:
        ReportError: the report answers another document, has other questions, or an impossible payload.
    """
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
