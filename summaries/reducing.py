"""Reducing reports to a summary, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from ldp_client import Mechanism, mechanism_for
from schemas import Report, Study
from schemas.errors import ReportError
from summaries.summary import QuestionSummary, Summary

CHUNK = 8192


def summarize(study: Study, reports: Iterable[Report]) -> Summary:
    """Reduce reports to a summary, in one pass and bounded memory.

    Raises ReportError for a report of another study document, one with other questions, or one
    that no device could have sent.
    """
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    summary = Summary.empty(study)
    stream = iter(reports)
    while chunk := list(islice(stream, CHUNK)):
        for report in chunk:
            check_report(study, mechanisms, report)
        summary = summary.merge(_summarize_chunk(study, mechanisms, chunk))
    return summary


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
