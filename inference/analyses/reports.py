"""Turn device reports into a table: each payload's likelihood for every choice, with the public values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.channel import Channel
from inference.analyses.matrices import columns_of
from inference.analyses.private_numbers import private_number_of
from inference.analyses.table import Codes, Private, Table
from inference.false_reports.conformance import conformance
from inference.false_reports.details import Detail, detail_of
from inference.results.verdict import Finding
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, SummaryError
from ldp_client.explain import in_words
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.number import NumberMechanism, RefusableNumber
from ldp_client.words.text import counted
from schemas import Question, Report, Study
from summaries import QuestionSummary, Summary, cell_summaries, check_study
from summaries.reducing import CheckedReports, good_reports
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import keeps_patterns

MOST_CHOICES = 1000


def columns_in(
    studies: Sequence[Study], formula: str | None, also: Sequence[str] = (), added: str | None = None
) -> list[str]:
    """Return the questions and public fields of these studies that a formula names, and `also`.

    added: a further column that it may name.
    """
    known: list[str] = []
    for study in studies:
        check_study(study)
        known += [*(question.id for question in study.questions), *(field.id for field in study.public)]
    return columns_of(formula, list(dict.fromkeys([*known, *([added] if added else [])])), also)


def table_of_reports(study: Study, reports: Iterable[Report] | Summary, names: Sequence[str]) -> Table:
    """Count a study's reports, or its summary by cell, by these questions and public fields.

    Raises InputError for questions that cannot be analysed, and if no report answers them.
    """
    check_study(study)
    asked = [question for question in study.questions if question.id in names]
    for question in asked:
        check_analysable(question)
    if isinstance(reports, Summary):
        return table_of_summary(study, reports, asked, [field for field in study.public if field.id in names])
    if study.sample_one_question and len(asked) > 1:
        raise InputError(
            f"each person answered one question of this study: no report has both {asked[0].id} and "
            f"{asked[1].id}, so their dependence cannot be estimated",
            code="formula.one_question_a_person",
        )
    fields = [field for field in study.public if field.id in names]
    seen = _seen(study, reports, asked, fields)
    others = sum(count for key, count in seen.items() if asked and not any(key[1]))
    keys = [key for key in seen if not asked or any(key[1])]
    if not keys:
        raise InputError(
            f"no report answers {' or '.join(question.id for question in asked) or 'the study'}",
            code="fit.no_answers_to_study",
        )
    counts = np.asarray([seen[key] for key in keys], np.int64)
    public = public_frame(fields, [key[0] for key in keys])
    private = {
        question.id: _private(question, [key[1][place] for key in keys])
        for place, question in enumerate(asked)
    }
    notes = reports.notes() if isinstance(reports, CheckedReports) else ()
    if others:
        notes = (*notes, f"{counted(others, 'report')} answered another question and are not used")
    came = {one.id: [key[1][place] for key in keys] for place, one in enumerate(asked)}
    doubts = _doubts(asked, came, counts)
    return Table(public, private, counts, notes, study.digest, noise_in_words(asked), doubts)


def _seen(
    study: Study, reports: Iterable[Report], asked: Sequence[Question], fields: Sequence[Any]
) -> Counter[tuple[tuple[str, ...], tuple[bytes | None, ...]]]:
    """Count each combination of public values and payloads."""
    seen: Counter[tuple[tuple[str, ...], tuple[bytes | None, ...]]] = Counter()
    for report in good_reports(study, reports):
        payloads = tuple(report.payloads.get(question.id) for question in asked)
        seen[tuple(public_value(report, field.id) for field in fields), payloads] += 1
    return seen


def _doubts(
    asked: Sequence[Question], payloads: Mapping[str, Sequence[bytes | None]], counts: Codes
) -> tuple[Finding, ...]:
    """Return findings if payloads of questions, with these counts, cannot all come from their mechanisms."""
    mechanisms = {one.id: mechanism_for(one) for one in asked}
    parts: dict[str, QuestionSummary] = {}
    details: dict[str, Detail | None] = {}
    for name, mechanism in mechanisms.items():
        came = [place for place, payload in enumerate(payloads[name]) if payload is not None]
        joined = np.frombuffer(b"".join(payloads[name][place] or b"" for place in came), np.uint8)
        rows = np.repeat(joined.reshape(len(came), mechanism.payload_size), counts[came], axis=0)
        parts[name], details[name] = QuestionSummary.of(mechanism, rows), detail_of(mechanism, rows)
    return tuple(chain.from_iterable(conformance(mechanisms, parts, details).values()))


def noise_in_words(asked: Sequence[Question]) -> tuple[str, ...]:
    """Return the study's description of each question's noise."""
    return tuple(f"{question.id}: {in_words(mechanism_for(question))}" for question in asked)


def table_of_summary(
    study: Study, summary: Summary, asked: Sequence[Question], fields: Sequence[Any]
) -> Table:
    """Count a summary kept by cell as its reports would be: it has each cell's reports to one question.

    Raises InputError for more than one question, or none, and if the mechanism's summary does not keep the
    reported sets. Raises SummaryError if it is of another study, or not kept by cell.
    """
    if len(asked) != 1:
        raise InputError(
            "a summary does not link one person's reports: it serves a formula with one private question, "
            f"but this has {len(asked)}. Use the reports themselves.",
            code="formula.summary_has_no_reports",
        )
    if summary.digest != study.digest:
        raise SummaryError("digest", "it is of another study document", code="summary.other_study")
    (question,) = asked
    if isinstance(mechanism_for(question), NumberMechanism):
        raise InputError(
            f"a summary has the reports of the number {question.id} only by cells of a grid: use "
            "the reports themselves",
            code="formula.summary_of_number",
        )
    places = [study.public.index(field) for field in fields]
    seen: Counter[tuple[tuple[str, ...], int]] = Counter()
    for cell, values in _by_cell(study, summary, question):
        own = tuple(cell[place] for place in places)
        for place in np.flatnonzero(values):
            seen[own, int(place)] += int(values[place])
    if not seen:
        raise InputError(f"no report answers {question.id}", code="fit.no_answers_in_summary")
    mechanism = choice_mechanism(question)
    distinct, codes = np.unique([place for _, place in seen], return_inverse=True)
    private = private_of_sets(question, reported_sets(mechanism, distinct), codes.astype(np.int64))
    public = public_frame(fields, [key[0] for key in seen])
    counts = np.asarray(list(seen.values()), np.int64)
    doubts = conformance({question.id: mechanism}, summary.questions, {}).get(question.id, ())
    noise = noise_in_words(asked)
    return Table(public, {question.id: private}, counts, (), study.digest, noise, doubts)


def _by_cell(
    study: Study, summary: Summary, question: Question
) -> Iterator[tuple[tuple[str, ...], NDArray[np.int64]]]:
    """Yield each cell's counts of a question.

    Raises InputError if the counts are not of each report's content.
    """
    mechanism = choice_mechanism(question)
    kind = REDUCTIONS[mechanism.name].counts(mechanism)
    if kind not in ("choices", "columns") and not keeps_patterns(mechanism.choices):
        raise InputError(
            f"a summary of {question.id} only counts how often each of its {mechanism.choices} choices was "
            "supported, not in which combinations: use the reports themselves",
            code="formula.summary_of_supports",
        )
    cells = cell_summaries(study, summary) if study.public else {(): summary.questions}
    for cell, parts in cells.items():
        yield cell, parts[question.id].values


def reported_sets(mechanism: ChoiceMechanism, places: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the packed sets at these indices of a summary's values."""
    size = mechanism.payload_size
    if REDUCTIONS[mechanism.name].counts(mechanism) in ("choices", "columns"):
        payloads = b"".join(int(place).to_bytes(size, "big") for place in places)
        return sets_of(mechanism, np.frombuffer(payloads, np.uint8).reshape(-1, size))
    patterns = b"".join(int(place).to_bytes(-(-mechanism.choices // 8), "little") for place in places)
    return np.frombuffer(patterns, np.uint8).reshape(len(places), -1)


def public_value(report: Report, field: str) -> str:
    """Return a report's public value. Raises InputError if only the ticket had it."""
    if field not in report.public:
        raise InputError(
            f"report {report.id} has no {field}, which was in its ticket: export the reports from their "
            "collector, which adds it",
            code="report.public_value_missing",
        )
    return report.public[field]


def check_analysable(question: Question) -> None:
    """Raise InputError unless the question's reports are sets of not too many choices, or numbers."""
    mechanism = mechanism_for(question)
    if isinstance(mechanism, NumberMechanism):
        return
    if isinstance(mechanism, RefusableNumber):
        raise InputError(
            f"{question.id} is a number that may be refused, which analyses do not support yet: `ldpkit fit` "
            "without a formula fits its own model",
            code="formula.refusable_number",
        )
    if not isinstance(mechanism, ChoiceMechanism):
        raise InputError(
            f"{question.id} asks for a {question.ask} under {mechanism.name}: analyses need choices, yes or "
            "no, numbers under laplace or gaussian noise, and public fields; `ldpkit fit` without a formula "
            "fits its own model",
            code="formula.question_not_analysable",
        )
    if mechanism.choices > MOST_CHOICES:
        raise InputError(
            f"{question.id} has {mechanism.choices:,} choices: analyses support {MOST_CHOICES:,}",
            code="formula.too_many_choices",
        )


def _private(question: Question, payloads: Sequence[bytes | None]) -> Private:
    if isinstance(mechanism_for(question), NumberMechanism):
        return private_number_of(question, payloads)
    return private_of(question, payloads)


def public_frame(fields: Sequence[Any], rows: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Return rows of public values as a frame: choices in the study's order, or numbers."""
    columns = {field.id: [row[place] for row in rows] for place, field in enumerate(fields)}
    return pd.DataFrame(
        {field.id: _public(field, columns[field.id]) for field in fields}, index=range(len(rows))
    )


def _public(field: Any, values: Sequence[str]) -> pd.Series | pd.Categorical:
    if field.choices:
        return pd.Categorical(values, categories=list(field.choices))
    return pd.Series([float(value) for value in values], dtype=np.float64)


def private_of(question: Question, payloads: Sequence[bytes | None]) -> Private:
    """Return a question's payloads as likelihood vectors; None is a missing payload."""
    mechanism = choice_mechanism(question)
    rows = np.asarray([place for place, payload in enumerate(payloads) if payload is not None], np.int64)
    joined = np.frombuffer(b"".join(payload for payload in payloads if payload is not None), np.uint8)
    sets = sets_of(mechanism, joined.reshape(len(rows), mechanism.payload_size))
    distinct, where = np.unique(sets, axis=0, return_inverse=True)
    codes: Codes = np.full(len(payloads), -1, np.int64)
    codes[rows] = where.ravel()
    return private_of_sets(question, distinct, codes)


def private_of_sets(question: Question, distinct: NDArray[np.uint8], codes: Codes) -> Private:
    """Return packed sets of choices as reports of a private column.

    codes: (rows,) the set of each row, −1 for none.
    """
    mechanism = choice_mechanism(question)
    if isinstance(mechanism, Hadamard):
        channel = _hadamard_channel(mechanism, distinct)
    else:
        bits = np.unpackbits(distinct, axis=1, bitorder="little")[:, : mechanism.choices].astype(bool)
        p, q = float(mechanism.p), float(mechanism.q)
        alone = bool((bits.sum(axis=1) == 1).all()) and abs(p + (mechanism.choices - 1) * q - 1) < 1e-12
        odds = np.nan if alone else mechanism.odds[0] / mechanism.odds[1]
        chances = np.where(np.eye(mechanism.choices) == 1, p, q)[None, None]
        channel = Channel(chances, bits, np.zeros(len(bits), np.int64), np.asarray([odds]))
    return Private(question.id, names_of_answers(mechanism), codes, channel, is_scale(question))


def is_scale(question: Question) -> bool:
    """Return True if a question's answers have an order. With a refusal choice, they have none."""
    return bool(question.ordered and not question.refusal)


def _hadamard_channel(mechanism: Hadamard, distinct: NDArray[np.uint8]) -> Channel:
    """Return the channel of Hadamard response: a report is one column, which supports its set of choices.

    A choice of another block is supported less than a choice of the same block, so two numbers do not
    suffice. Columns with the same set are one kind.
    """
    size, k = mechanism.payload_size, mechanism.choices
    payloads = np.arange(mechanism.columns, dtype=">u4").view(np.uint8).reshape(-1, 4)[:, 4 - size :]
    kinds, kind = np.unique(sets_of(mechanism, payloads), axis=0, return_inverse=True)
    bits = np.unpackbits(kinds, axis=1, bitorder="little")[:, :k]
    p, halves = float(mechanism.p), 2 * mechanism.blocks
    of_column = np.where(bits.T == 1, p, (1 - p) / (halves - 1)) * 2 / mechanism.width
    places = {row.tobytes(): place for place, row in enumerate(kinds)}
    shows = np.eye(len(kinds), dtype=bool)[[places[row.tobytes()] for row in distinct]]
    chances = of_column * np.bincount(kind.ravel())
    return Channel(chances[None, None], shows, np.zeros(len(shows), np.int64))


def names_of_answers(mechanism: ChoiceMechanism) -> tuple[str, ...]:
    """Return a choice's labels. If refusal is an answer too, it has a name that no label has."""
    name = "(refused)"
    while name in mechanism.labels:
        name = f"({name})"
    return tuple(name if label is None else str(label) for label in mechanism.labels)


def choice_mechanism(question: Question) -> ChoiceMechanism:
    """Return the mechanism of a question that can be analysed."""
    mechanism = mechanism_for(question)
    assert isinstance(mechanism, ChoiceMechanism)
    return mechanism
