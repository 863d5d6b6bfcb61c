"""Turn device reports into a table: each payload's likelihood for every choice, with the public values."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.channel import Channel
from inference.analyses.matrices import columns_of
from inference.analyses.private_numbers import private_number_of
from inference.analyses.table import Private, Table
from inference.false_reports.conformance import conformance
from inference.false_reports.details import Details
from inference.results.methods import noise_of
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, SummaryError
from ldp_client.explain import in_words
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.words.text import counted
from schemas import Question, Report, Study
from summaries import Summary, cell_summaries, check_study
from summaries.reading import Reports, evidence_of
from summaries.reducing import Seen, reduce_reports
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import keeps_patterns

MOST_CHOICES = 1000
# {(public values, payload of each question): how many reports}.
Rows = Counter[tuple[tuple[str, ...], tuple[bytes, ...]]]


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


def table_of_reports(study: Study, given: Reports, names: Sequence[str], seen: Seen | None = None) -> Table:
    """Count a study's reports, or its summary by cell, by these questions and public fields.

    given: as `fit` takes reports. seen: reports of other waves, in which none of these may be. Raises
    InputError for questions that cannot be analysed, and if no report answers them.
    """
    # 1. What is asked.
    check_study(study)
    reports = evidence_of(study, given)
    asked = [question for question in study.questions if question.id in names]
    fields = [field for field in study.public if field.id in names]
    for question in asked:
        check_analysable(question)
    # 2. Count equal reports.
    rows: Rows = Counter()
    notes: tuple[str, ...] = ()
    details = Details(study)
    if isinstance(reports, Summary):
        if seen is not None:
            raise InputError(
                "a summary has no single reports: waves need the reports themselves",
                code="wave.summary_has_no_reports",
            )
        rows, summary = _rows_of_summary(study, reports, asked, fields), reports
    else:
        if study.sample_one_question and len(asked) > 1:
            raise InputError(
                f"each person answered one question of this study: no report has both {asked[0].id} and "
                f"{asked[1].id}, so their dependence cannot be estimated",
                code="formula.one_question_a_person",
            )
        each = details.watch(_counted(reports, asked, fields, seen, rows))
        summary = reduce_reports(study, each, by_cell=False)
        others = sum(rows.pop(key) for key in list(rows) if len(key[1]) < len(asked))
        notes = reports.notes()
        if others:
            notes = (*notes, f"{counted(others, 'report')} answered another question and are not used")
    if not rows:
        raise InputError(
            f"no report answers {' or '.join(question.id for question in asked) or 'the study'}",
            code="fit.no_answers_to_study",
        )
    # 3. Whether the reports are as their mechanisms send them.
    mechanisms = {question.id: mechanism_for(question) for question in asked}
    doubts = conformance(mechanisms, summary.questions, details.by_question()).values()
    # 4. Their public values, and P(report | answer).
    values = {field.id: [public[at] for public, _ in rows] for at, field in enumerate(fields)}
    public = {
        field.id: pd.Categorical(values[field.id], categories=list(field.choices))
        if field.choices
        else np.asarray(values[field.id], np.float64)
        for field in fields
    }
    private = {}
    for at, question in enumerate(asked):
        came, mechanism = [payloads[at] for _, payloads in rows], mechanisms[question.id]
        if isinstance(mechanism, ChoiceMechanism):
            are_sets = isinstance(reports, Summary) and not _keeps_payloads(mechanism)
            private[question.id] = private_of(question, came, are_sets)
        else:
            private[question.id] = private_number_of(question, came)
    frame = pd.DataFrame(public, index=range(len(rows)))
    noise = tuple(f"{name}: {noise_of(one)}. {in_words(one)}" for name, one in mechanisms.items())
    counts = np.asarray([*rows.values()], np.int64)
    return Table(frame, private, counts, notes, study.digest, noise, tuple(chain.from_iterable(doubts)))


def _counted(
    reports: Iterable[Report], asked: Sequence[Question], fields: Sequence[Any], seen: Seen | None, rows: Rows
) -> Iterator[Report]:
    """Yield the reports, and count them in `rows`; a report on another question has no payload there."""
    for report in reports:
        if seen is not None and seen.holds(report):
            raise InputError(
                f"report {report.id} is also in another wave: give each report once",
                code="wave.report_in_two",
            )
        public = tuple(report.public[field.id] for field in fields)
        payloads = [report.payloads[one.id] for one in asked if one.id in report.payloads]
        rows[public, tuple(payloads)] += 1
        yield report


def _rows_of_summary(
    study: Study, summary: Summary, asked: Sequence[Question], fields: Sequence[Any]
) -> Rows:
    """Return a summary's counts as those of its reports: it has each cell's reports to one question.

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
    mechanism = mechanism_for(question)
    keeps_payloads = isinstance(mechanism, ChoiceMechanism) and _keeps_payloads(mechanism)
    if not isinstance(mechanism, ChoiceMechanism) or not (
        keeps_payloads or keeps_patterns(mechanism.choices)
    ):
        raise InputError(
            f"a summary of {question.id} adds its reports up, and does not keep how often each came: use "
            "the reports themselves",
            code="formula.summary_adds_reports_up",
        )
    rows: Rows = Counter()
    places = [study.public.index(field) for field in fields]
    cells = cell_summaries(study, summary) if study.public else {(): summary.questions}
    for cell, parts in cells.items():
        for value in np.flatnonzero(parts[question.id].values):
            size = mechanism.payload_size if keeps_payloads else -(-mechanism.choices // 8)
            payload = int(value).to_bytes(size, "big" if keeps_payloads else "little")
            rows[tuple(cell[at] for at in places), (payload,)] += int(parts[question.id].values[value])
    return rows


def _keeps_payloads(mechanism: ChoiceMechanism) -> bool:
    """Return True if a summary counts payloads, and not the sets of choices that they support."""
    return REDUCTIONS[mechanism.name].counts(mechanism) in ("choices", "columns")


def check_analysable(question: Question) -> None:
    """Raise InputError unless the question's reports are sets of not too many choices, or numbers."""
    mechanism = mechanism_for(question)
    if isinstance(mechanism, NumberMechanism):
        return
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


def private_of(question: Question, payloads: Sequence[bytes], are_sets: bool = False) -> Private:
    """Return a question's payloads, or packed sets of choices, as likelihood vectors."""
    mechanism = mechanism_for(question)
    assert isinstance(mechanism, ChoiceMechanism)
    sets = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    distinct, where = np.unique(sets if are_sets else sets_of(mechanism, sets), axis=0, return_inverse=True)
    codes = where.ravel().astype(np.int64)
    if isinstance(mechanism, Hadamard):
        channel = _hadamard_channel(mechanism, distinct)
    else:
        bits = np.unpackbits(distinct, axis=1, bitorder="little")[:, : mechanism.choices].astype(bool)
        p, q = float(mechanism.p), float(mechanism.q)
        alone = bool((bits.sum(axis=1) == 1).all()) and abs(p + (mechanism.choices - 1) * q - 1) < 1e-12
        odds = np.nan if alone else mechanism.odds[0] / mechanism.odds[1]
        chances = np.where(np.eye(mechanism.choices) == 1, p, q)[None, None]
        channel = Channel(chances, bits, np.zeros(len(bits), np.int64), np.asarray([odds]))
    # If refusal is an answer too, it has a name that no label has.
    refused = "(refused)"
    while refused in mechanism.labels:
        refused = f"({refused})"
    answers = tuple(refused if label is None else str(label) for label in mechanism.labels)
    return Private(question.id, answers, codes, channel, bool(question.ordered and not question.refusal))


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
