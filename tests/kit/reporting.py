"""Reports that devices would send, from a seed that follows from the answers; their summaries and tables."""

import json
from types import SimpleNamespace

import numpy as np

from ldp_client import mechanism_for, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldpkit.cli.report_files import DatedReport, write_table
from summaries import QuestionSummary, Summary
from tests.statistics import seeded


def reports_of(study, people):
    """One report for each person: {question or public field: answer}, or the answer to the only question."""
    mechanisms, source = mechanisms_of(study), seeded(study.digest, people)
    alone = [question.id for question in study.questions] if not study.public else []
    answers = [{alone[0]: one} if len(alone) == 1 else one for one in people]
    return [perturb_answers(study, mechanisms, one, source) for one in answers]


def reduced(question, answers):
    """The summary of reports of answers, or of {field: answers}, perturbed in bulk."""
    mechanism = mechanism_for(question)
    payloads = perturb_many(mechanism, answers, seeded(question.id, answers))
    return QuestionSummary.of(mechanism, np.asarray(payloads, dtype=np.uint8))


def summary_of(study, parts):
    """The summary of a study whose other questions have no reports."""
    return Summary(study.id, study.version, study.digest, {**Summary.empty(study).questions, **parts})


def write_columns(reports, path):
    """Write reports as CSV or Parquet."""
    lines = (json.dumps({"day": "2026-06-15", "report": report.to_document()}) for report in reports)
    # Without columns: it takes reports of any study, also wrong ones.
    decoding = SimpleNamespace(columns={}, meet=lambda _report: None, cells=lambda _report: {})
    return write_table(map(DatedReport.from_line, lines), path, decoding)
