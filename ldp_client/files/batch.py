"""Device-side noise for a file of answers that someone already holds (a gateway does), or of a table."""

import os
from itertools import islice

from ldp_client.answering import perturb_answers, public_values, quantise_answers, refuse_route, report_of
from ldp_client.columns.clipping import ClippedCount, is_clipped
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError, InputError, RefusedError
from ldp_client.files.answers import read_answers
from ldp_client.files.disk import STREAM, replacing
from ldp_client.files.tables import table_answers
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.memoized import refuse_forgetful
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Optional

    from ldp_client.core.randomness import Source
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Question, Study
    from ldp_client.mechanisms import Mechanism

    Mechanisms = dict[str, Mechanism]
    Quantised = list[tuple[str, Any]]
    Public = dict[str, str]


# People at once: bounds the memory, and how often progress is told.
CHUNK = 4096


def perturb_file(
    study: "Study",
    answers_path: str,
    reports_path: str,
    progress: "Callable[[int], None]" = lambda _: None,
    note: "Callable[[str], None]" = lambda _: None,
    refusals: bool = False,
) -> int:
    """Write one report for each person of an answer file, NDJSON; returns how many.

    A data holder's file is its table, of which it writes one report.
    Nothing is written when any answer is wrong. progress is told how many are done, note in one line how many
    answers were clipped. Uses NumPy where it is installed. refusals: take blanks as such, where
    questions offer them.

    Raises InputError with the line, for reports that exist, and for memoized questions, which need a memory
    of each person; RefusedError for a study with a route, or one whose reports need tokens.
    """
    if study.channel is not None and study.channel.tokens is not None:
        # Before any noise is drawn: it would be spent for nothing.
        raise RefusedError.say("files.tokenless", study=study.id)
    return _perturb(study, answers_path, reports_path, progress, note, refusals)


def _perturb(
    study: "Study",
    answers_path: str,
    reports_path: str,
    progress: "Callable[[int], None]",
    note: "Callable[[str], None]",
    refusals: bool,
) -> int:
    refuse_route(study)
    if reports_path != STREAM and os.path.exists(reports_path):
        raise InputError.say("files.reports_exist", file=reports_path)
    if os.path.exists(answers_path) and not os.path.isfile(answers_path) and not os.path.isdir(answers_path):
        raise InputError.say("cli.answers_in_a_file")
    mechanisms = mechanisms_of(study)
    refuse_forgetful(mechanisms)
    _refuse_unasked(study, refusals)
    clipped = ClippedCount()
    if study.unit == "holder":
        count = 1
        perturb_table(study, mechanisms, answers_path, reports_path, clipped)
    else:
        people = _quantised_people(study, mechanisms, answers_path, clipped, refusals)
        count = _write_reports(study, mechanisms, people, answers_path, reports_path, progress)
    if clipped.line():
        note(clipped.line())
    return count


def _write_reports(
    study: "Study",
    mechanisms: "Mechanisms",
    people: "Iterator[tuple[Quantised, Public]]",
    answers_path: str,
    reports_path: str,
    progress: "Callable[[int], None]",
) -> int:
    """One report for each person; returns how many. Raises InputError where there is nobody."""
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


def _refuse_unasked(study: "Study", refusals: bool) -> None:
    """Raises InputError where blanks would be refusals, and no question offers any."""
    if refusals and not any([question.refusal for question in study.questions]):
        raise InputError.say("core.no_refusal", question=study.id)


def _quantised_people(
    study: "Study", mechanisms: "Mechanisms", path: str, clipped: ClippedCount, refusals: bool
) -> "Iterator[tuple[Quantised, Public]]":
    """What each person is asked, and what is sent of them in clear: nobody's invitation adds to that here."""
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
    study: "Study",
    mechanisms: "Mechanisms",
    people: "list[Quantised]",
    random: "Source" = urandom,
    public: "Optional[list[Public]]" = None,
) -> "Iterator[Report]":
    """One report for each person's quantised answers: in bulk where NumPy is installed and all are asked.

    public: each person's public values, none without such fields.
    """
    values = public or [{} for _ in people]
    one_by_one = (report_of(study, mechanisms, person, random, each) for person, each in zip(people, values))
    if study.ask_one:
        return one_by_one
    try:
        from ldp_client.bulk.perturbing import reports_of
    except ModuleNotFoundError as missing:
        if missing.name != "numpy":
            raise
        return one_by_one
    return reports_of(study, mechanisms, people, random, values)


def perturb_table(
    study: "Study",
    mechanisms: "dict[str, Mechanism]",
    table_path: str,
    report_path: str,
    clipped: ClippedCount,
) -> None:
    """Write the report of a table, one line of NDJSON. Nothing is written when a value is wrong.

    clipped counts the rows that were.

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
    study: "Study", tables: "Mapping[str, Any]", clipped: ClippedCount
) -> "dict[str, CountedTable]":
    """The tables of a holder's answers; clipped counts their rows as they are read."""
    return {name: CountedTable(study.question(name), tables[name], clipped) for name in tables}


class CountedTable:
    """A table whose rows are counted, where they are clipped, while its parts are read."""

    def __init__(self, question: "Question", table: "Any", count: ClippedCount) -> None:
        self.question = question
        self.table = table
        self.count = count

    def chunks(self) -> "Iterator[Any]":
        """The table's parts, each counted once it was taken."""
        before = 0
        for part in self.table.chunks():
            yield part
            before += len(next(iter(part.values())))
            self.count.note(self.question.id, _clipped_rows(self.question, part))
        self.count.total = before


def _clipped_rows(question: "Question", columns: "dict[str, Any]") -> int:
    try:
        from ldp_client.bulk.quantising import count_clipped
    except ModuleNotFoundError:
        records = [dict(zip(columns, values)) for values in zip(*columns.values())]
        return sum([is_clipped(question, record) for record in records])
    return count_clipped(question, columns)
