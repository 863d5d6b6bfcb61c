"""A study's instructions for dice, and the entry sheet for its records."""

from collections.abc import Iterable
from math import log

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.rational import Rational
from ldp_client.files.disk import replacing
from ldp_client.words.public import public_line
from ldp_client.words.text import ENGLISH, Words, rounded_up, visible
from schemas.names import title_above
from schemas.paper import PaperQuestion
from schemas.study import Study

# The sheet's columns for the record's number and for the study version whose dice were used.
RECORD, SHEET = "record", "sheet"
MOST_RECORDS = 1_000_000


def sheet_columns(study: Study) -> list[str]:
    """Return the columns of a study's sheet: number, study version, public fields, paper questions.

    Raises InputError if the study is not asked on paper, or as `refuse_taken` does.
    """
    if study.paper is None:
        raise InputError.say("paper.none", study=study.id)
    refuse_taken(study)
    return [RECORD, SHEET, *_fields(study)]


def refuse_taken(study: Study) -> None:
    """Raise InputError if a field of a paper study has the name of a column that its sheet adds."""
    for name in (RECORD, SHEET) if study.paper is not None else ():
        if name in _fields(study):
            raise InputError.say("paper.taken", name=name)


def _fields(study: Study) -> list[str]:
    questions = study.paper.questions if study.paper is not None else ()
    return [*[field.id for field in study.public], *[one.id for one in questions]]


def epsilon_of(questions: Iterable[PaperQuestion]) -> float | None:
    """Return the ε of the reports to all these questions, in nats; None if no ε bounds it."""
    total = 0.0
    for ratio in [one.ratio for one in questions]:
        if ratio is None:
            return None
        total += log(ratio.numerator) - log(ratio.denominator)
    return total


def sheet_name(study: Study) -> str:
    """Return the text in each record: study, version and the digest's start, as versions' dice may differ."""
    return f"{study.id} {study.version} {study.digest[:12]}"


def write_sheet(study: Study, path: str, records: int) -> None:
    """Write an empty sheet, as CSV. Raises InputError if the study is not asked on paper."""
    import csv

    columns = sheet_columns(study)
    if not 1 <= records <= MOST_RECORDS:
        raise UsageError.say("paper.records", most=f"{MOST_RECORDS:,}")
    with replacing(path, is_new=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        blank = [sheet_name(study), *[""] * (len(columns) - 2)]
        writer.writerows([[number, *blank] for number in range(1, records + 1)])


def paper_lines(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return the instructions on paper, question by question, with what a record reveals.

    Raises InputError if the study is not asked on paper.
    """
    sheet_columns(study)
    assert study.paper is not None
    lines = [words.say("paper.head", title=visible(study.title), id=study.id, version=study.version)]
    lines += [visible(study.paper.instructions)] if study.paper.instructions else []
    for field in study.public:
        lines.append(public_line(field, words))
    for one in study.paper.questions:
        lines += ["", *_question(study, one, words)]
    if len(study.paper.questions) > 1:
        lines += ["", *_together(study.paper.questions, words)]
    return lines


def _together(questions: tuple[PaperQuestion, ...], words: Words) -> list[str]:
    epsilon, count = epsilon_of(questions), len(questions)
    if epsilon is None:
        return [words.say("paper.unbounded", questions=count)]
    total = words.say("paper.total", questions=count, epsilon=rounded_up(epsilon, 4))
    return [total, "  " + _odds(epsilon, words)]


def _odds(epsilon: float, words: Words) -> str:
    from ldp_client.explain import odds

    return odds(epsilon, words=words)


def _question(study: Study, one: PaperQuestion, words: Words) -> list[str]:
    text = study.question(one.id).full_text or title_above(study.document, one.id)
    lines = [words.say("study.question", id=one.id, text=visible(text))]
    lines += [f"  {visible(one.instructions)}"]
    lines += [f"  {words.say('paper.reports', reports=_listed(one.reports))}"]
    for answer, row in zip(one.answers, one.matrix):
        chances = [f"{visible(report)} {_fraction(chance)}" for report, chance in zip(one.reports, row)]
        lines.append(f"  {words.say('paper.answer', answer=visible(answer), chances=', '.join(chances))}")
    epsilon = epsilon_of([one])
    return [*lines, "  " + (words.say("paper.certain") if epsilon is None else _odds(epsilon, words))]


def _fraction(chance: Rational) -> str:
    return f"{chance.numerator}/{chance.denominator}" if chance.denominator > 1 else str(chance.numerator)


def _listed(labels: tuple[str, ...]) -> str:
    return " | ".join([visible(label) for label in labels])
