"""Device-side noise for a file of answers that a gateway already holds, or for a data holder's table."""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from ldp_client.answering import perturb_answers, public_values, quantise_answers, refuse_route, report_of
from ldp_client.columns.clipping import ClippedCount
from ldp_client.core.randomness import Source, urandom
from ldp_client.documents.errors import AnswerError, InputError, MissingExtraError, RefusedError, UsageError
from ldp_client.documents.question import Question
from ldp_client.documents.report import Report
from ldp_client.documents.study import Study
from ldp_client.files.answers import read_answers
from ldp_client.files.disk import STREAM, replacing
from ldp_client.files.tables import table_answers
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.base import refuse_forgetful
from ldp_client.words.text import say

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
    if study.channel is not None and study.channel.tickets is not None:
        # Refuse before any noise is drawn: its privacy budget would be wasted.
        raise RefusedError.say("files.takes_tickets", study=study.id)
    return _perturb(study, answers_path, reports_path, progress, note, refusals)


def _perturb(
    study: Study,
    answers_path: str,
    reports_path: str,
    progress: Callable[[int], None],
    note: Callable[[str], None],
    refusals: bool,
) -> int:
    refuse_route(study)
    if reports_path != STREAM and os.path.exists(reports_path):
        raise InputError.say("files.reports_exist", file=reports_path)
    is_pipe = os.path.exists(answers_path) and not os.path.isfile(answers_path)
    if answers_path == STREAM or (is_pipe and not os.path.isdir(answers_path)):
        raise UsageError.say("files.answers_in_a_file")
    mechanisms = mechanisms_of(study)
    refuse_forgetful(mechanisms)
    _refuse_unasked(study, refusals)
    clipped = ClippedCount()
    if study.respondent == "holder":
        count = 1
        perturb_table(study, mechanisms, answers_path, reports_path, clipped)
    else:
        people = _quantised_people(study, mechanisms, answers_path, clipped, refusals)
        count = _write_reports(study, mechanisms, people, answers_path, reports_path, progress)
    if clipped.line():
        note(clipped.line())
    return count


def _write_reports(
    study: Study,
    mechanisms: Mechanisms,
    people: Iterator[tuple[Quantised, Public]],
    answers_path: str,
    reports_path: str,
    progress: Callable[[int], None],
) -> int:
    """Write one report for each person and return how many. Raises InputError for a file without people."""
    count = 0
    with replacing(reports_path, is_new=True, private=True) as file:
        while chunk := list(islice(people, CHUNK)):
            quantised, public = [list(part) for part in zip(*chunk)]
            for report in perturb_people(study, mechanisms, quantised, public=public):
                file.write(report.to_json() + "\n")
            count += len(chunk)
            progress(count)
        if not count:
            raise InputError.say("files.no_answers", file=os.path.basename(answers_path))
    return count


def _refuse_unasked(study: Study, refusals: bool) -> None:
    """Raise InputError if `refusals` is set but no question offers refusal."""
    if refusals and not any([question.refusal for question in study.questions]):
        raise InputError.say("core.no_refusal", question=study.id)


def _quantised_people(
    study: Study, mechanisms: Mechanisms, path: str, clipped: ClippedCount, refusals: bool
) -> Iterator[tuple[Quantised, Public]]:
    """Yield each person's quantised answers and public values. No ticket adds public values here."""
    for number, answers in read_answers(study, path, refusals):
        try:
            quantised = quantise_answers(study, mechanisms, answers)
            public = public_values(study, answers, invited=False)
        except AnswerError as error:
            where = say("files.line", file=os.path.basename(path), line=number)
            raise InputError(
                f"{where}: {error.field}: {error.problem}", code="answer.person_invalid"
            ) from None
        clipped.add(study, answers)
        yield quantised, public


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


def perturb_table(
    study: Study,
    mechanisms: dict[str, Mechanism],
    table_path: str,
    report_path: str,
    clipped: ClippedCount,
) -> None:
    """Write the report of a table, one line of NDJSON. Nothing is written if a value is wrong.

    clipped: counts the clipped rows.

    Raises InputError with the row and the column.
    """
    answers = counted_tables(study, table_answers(study, table_path), clipped)
    try:
        report = perturb_answers(study, mechanisms, answers)
    except AnswerError as error:
        name = os.path.basename(table_path)
        raise InputError(f"{name}: {error.field}: {error.problem}", code="answer.table_invalid") from None
    with replacing(report_path, is_new=True, private=True) as file:
        file.write(report.to_json() + "\n")


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
