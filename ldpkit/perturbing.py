"""Device-side noise for a file of answers that a gateway already holds, or for a data holder's table."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ldp_client.answering import perturb_answers, public_values, quantise_answers, refuse_route, report_of
from ldp_client.columns.clipping import ClippedCount
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError, InputError, RefusedError, UsageError
from ldp_client.documents.report import Report
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.base import refuse_forgetful
from ldpkit.answer_files import line_error, read_answers, table_answers
from schemas.disk import STREAM, replacing

if TYPE_CHECKING:
    from summaries.people.codebook import Codebook

Mechanisms = dict[str, Mechanism]
# How often progress is reported.
REPORTS_BETWEEN_STEPS = 4096


def perturb_file(
    study: Study,
    answers_path: str,
    reports_path: str,
    progress: Callable[[int], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    refusals: bool = False,
    codebook: "Codebook | None" = None,
) -> int:
    """Write one report for each person of an answer file, as NDJSON, and return how many.

    A data holder's file is its table, which makes one report. Nothing is written if any answer is wrong.

    Args:
        study: the study.
        answers_path: the answers: CSV, JSON, Parquet, Stata or SPSS; a data holder's table is CSV.
        reports_path: the new file.
        progress: receives how many reports are done.
        note: receives lines with the columns that are ignored, and the number of clipped answers.
        refusals: treat blanks as refusals, if questions offer them.
        codebook: what columns mean.

    Raises:
        InputError: an answer is wrong, with its line; the reports file exists; or a question is memoized,
            which needs state for each person.
        RefusedError: the study is a secure sum, or its reports need tokens.
    """
    # 1. Refuse before any noise is drawn: its privacy budget would be wasted.
    mechanisms = _mechanisms_for(study)
    if reports_path != STREAM and os.path.exists(reports_path):
        raise InputError(
            f"{reports_path} exists: these answers already have their noise. Keep those "
            "reports, and name another file for other answers",
            code="files.reports_exist",
        )
    is_pipe = os.path.exists(answers_path) and not os.path.isfile(answers_path)
    if answers_path == STREAM or (is_pipe and not os.path.isdir(answers_path)):
        raise UsageError(
            "answers are read from a file, not from standard input: each run draws new noise "
            "and spends epsilon again",
            code="files.answers_in_a_file",
        )
    if refusals and not any([question.refusal for question in study.questions]):
        raise InputError.say("core.no_refusal", question=study.id)
    # 2. Write the reports, as they are made.
    clipped, count = ClippedCount(), 0
    if study.respondent == "holder":
        tables = table_answers(study, answers_path)
        try:
            reports = iter([perturb_answers(study, mechanisms, dict(tables))])
        except AnswerError as error:
            name = os.path.basename(answers_path)
            problem = f"{name}: {error.field}: {error.problem}"
            raise InputError(problem, code="answer.table_invalid") from None
    else:
        from summaries.people.files import read_frame

        frame, name = read_frame(answers_path), os.path.basename(answers_path)
        rows = read_answers(study, frame, name, refusals, codebook, note)
        reports = _reports_of_people(study, mechanisms, answers_path, rows, clipped)
    with replacing(reports_path, is_new=True, mode=0o600) as file:
        for count, report in enumerate(reports, 1):
            file.write(report.to_json() + "\n")
            if count % REPORTS_BETWEEN_STEPS == 0:
                progress(count)
        if not count:
            raise InputError(
                f"{os.path.basename(answers_path)}: there are no answers in it", code="files.no_answers"
            )
        progress(count)
    # 3. Tell what was clipped.
    line = clipped_rows(study, tables) if study.respondent == "holder" else clipped.line()
    if line:
        note(line)
    return count


def perturb(
    study: Study, answers: Any, *, codebook: "Codebook | None" = None, refusals: bool = False
) -> list[Report]:
    """Add device-side noise to a table of people's answers. Each call draws new noise and spends ε again.

    Args:
        study: the study.
        answers: a pandas, Polars or Arrow table with a row for each person, and a column for each question,
            public field and field of a record (`question.field`).
        codebook: {column: what its cells mean}, as `summaries.people.codebook.Column`.
        refusals: treat blanks as refusals, if questions offer them.

    Returns:
        A report for each person, which `fit` accepts.

    Raises:
        InputError: an answer is wrong, or looks odd; or a question is memoized.
        RefusedError: the study is a secure sum, or its reports need tickets.
    """
    mechanisms = _mechanisms_for(study)
    frame = answers.to_pandas() if hasattr(answers, "to_pandas") else answers
    rows = read_answers(study, frame, "the table", refusals, codebook)
    return list(_reports_of_people(study, mechanisms, "the table", rows, ClippedCount()))


def _mechanisms_for(study: Study) -> Mechanisms:
    """Return a study's mechanisms. Raises RefusedError and InputError as `perturb`."""
    if study.channel is not None and study.channel.tickets is not None:
        raise RefusedError(
            f"{study.id} needs a blind ticket for each report, as `ldpkit answer` sends it: no collector "
            "accepts reports from a file. No noise was drawn",
            code="files.takes_tickets",
        )
    refuse_route(study)
    mechanisms = mechanisms_of(study)
    refuse_forgetful(mechanisms)
    return mechanisms


def _reports_of_people(
    study: Study,
    mechanisms: Mechanisms,
    path: str,
    rows: Iterator[tuple[int, dict[str, Any]]],
    clipped: ClippedCount,
) -> Iterator[Report]:
    """Yield each person's report. No ticket adds public values here."""
    for number, answers in rows:
        try:
            quantised = quantise_answers(study, mechanisms, answers)
            public = public_values(study, answers, invited=False)
        except AnswerError as error:
            raise line_error(path, number, error) from None
        clipped.add(study, answers)
        yield report_of(study, mechanisms, quantised, urandom, public)


def clipped_rows(study: Study, tables: Mapping[str, Any]) -> str:
    """Return one line about the clipped rows of a data holder's tables, "" for none. Reads them once more."""
    from ldp_client.bulk.quantising import count_clipped

    clipped = ClippedCount()
    for name, table in tables.items():
        clipped.total = 0
        for part in table.chunks():
            clipped.total += len(next(iter(part.values())))
            clipped.note(name, count_clipped(study.question(name), part))
    return clipped.line()
