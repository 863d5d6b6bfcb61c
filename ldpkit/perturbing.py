"""Device-side noise for a file of answers that a gateway already holds, or for a data holder's table."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ldp_client.answering import perturb_answers, public_values, quantise_answers, refuse_route, report_of
from ldp_client.columns.clipping import ClippedCount
from ldp_client.core.randomness import Source, urandom
from ldp_client.documents.errors import AnswerError, InputError, MissingExtraError, RefusedError, UsageError
from ldp_client.documents.question import Question
from ldp_client.documents.report import Report
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.base import refuse_forgetful
from ldpkit.answer_files import line_error, read_answers, table_answers
from schemas.disk import STREAM, replacing

Mechanisms = dict[str, Mechanism]
Quantised = list[tuple[str, Any]]
Public = dict[str, str]


# People at once: it limits memory, and how often progress is reported.
CHUNK = 4096


def perturb_file(
    study: Study,
    answers_path: str,
    reports_path: str,
    progress: Callable[[int], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    refusals: bool = False,
) -> int:
    """Write one report for each person of an answer file, as NDJSON, and return how many.

    A data holder's file is its table, which makes one report.
    Nothing is written if any answer is wrong. `progress` receives how many reports are done, `note` one line
    with the number of clipped answers. Uses NumPy if it is installed. refusals: treat blanks as refusals, if
    questions offer them.

    Raises InputError with the line, if the reports file exists, and for memoized questions, which need state
    for each person. Raises RefusedError for a secure sum, or whose reports need tokens.
    """
    # 1. Refuse before any noise is drawn: its privacy budget would be wasted.
    if study.channel is not None and study.channel.tickets is not None:
        raise RefusedError(
            f"{study.id} needs a blind ticket for each report, which only a device uses "
            "(ldpkit answer). No collector accepts reports on this study from a file. No "
            "noise was drawn",
            code="files.takes_tickets",
        )
    refuse_route(study)
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
    mechanisms = mechanisms_of(study)
    refuse_forgetful(mechanisms)
    if refusals and not any([question.refusal for question in study.questions]):
        raise InputError.say("core.no_refusal", question=study.id)
    # 2. The reports, as they are made.
    clipped, count = ClippedCount(), 0
    if study.respondent == "holder":
        chunks: Iterator[Iterable[Report]] = iter(
            [[_report_of_table(study, mechanisms, answers_path, clipped)]]
        )
    else:
        chunks = _reports_of_people(study, mechanisms, answers_path, clipped, refusals)
    with replacing(reports_path, is_new=True, mode=0o600) as file:
        for chunk in chunks:
            for report in chunk:
                file.write(report.to_json() + "\n")
                count += 1
            progress(count)
        if not count:
            raise InputError(
                f"{os.path.basename(answers_path)}: there are no answers in it", code="files.no_answers"
            )
    # 3. What was clipped.
    if clipped.line():
        note(clipped.line())
    return count


def _reports_of_people(
    study: Study, mechanisms: Mechanisms, path: str, clipped: ClippedCount, refusals: bool
) -> Iterator[Iterable[Report]]:
    """Yield the reports of CHUNK people at a time. No ticket adds public values here."""
    lines = read_answers(study, path, refusals)
    while chunk := list(islice(lines, CHUNK)):
        people, public = [], []
        for number, answers in chunk:
            try:
                people.append(quantise_answers(study, mechanisms, answers))
                public.append(public_values(study, answers, invited=False))
            except AnswerError as error:
                raise line_error(path, number, error) from None
            clipped.add(study, answers)
        yield perturb_people(study, mechanisms, people, public=public)


def _report_of_table(study: Study, mechanisms: Mechanisms, path: str, clipped: ClippedCount) -> Report:
    try:
        return perturb_answers(study, mechanisms, counted_tables(study, table_answers(study, path), clipped))
    except AnswerError as error:
        name = os.path.basename(path)
        raise InputError(f"{name}: {error.field}: {error.problem}", code="answer.table_invalid") from None


def perturb_people(
    study: Study,
    mechanisms: Mechanisms,
    people: list[Quantised],
    random: Source = urandom,
    public: list[Public] | None = None,
) -> Iterator[Report]:
    """Yield a report for each person's quantised answers: in bulk with NumPy, unless the study asks one.

    public: each person's public values; None for a study without public fields.
    """
    values = public or [{} for _ in people]
    one_by_one = (report_of(study, mechanisms, person, random, each) for person, each in zip(people, values))
    if study.sample_one_question:
        return one_by_one
    try:
        from ldp_client.bulk.perturbing import reports_of
    except MissingExtraError:
        return one_by_one
    return reports_of(study, mechanisms, people, random, values)


def counted_tables(
    study: Study, tables: Mapping[str, Any], clipped: ClippedCount
) -> "dict[str, CountedTable]":
    """Wrap a data holder's tables so that `clipped` counts their clipped rows as they are read."""
    return {name: CountedTable(study.question(name), tables[name], clipped) for name in tables}


class CountedTable:
    """A table that counts its clipped rows while its parts are read."""

    def __init__(self, question: Question, table: Any, count: ClippedCount) -> None:
        self.question = question
        self.table = table
        self.count = count

    def chunks(self) -> Iterator[Any]:
        """Yield the table's parts. Each part is counted after it was consumed."""
        from ldp_client.bulk.quantising import count_clipped

        before = 0
        for part in self.table.chunks():
            yield part
            before += len(next(iter(part.values())))
            self.count.note(self.question.id, count_clipped(self.question, part))
        self.count.total = before
