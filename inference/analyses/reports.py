"""Reports of devices as a table: what each payload says of every choice, beside the public values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.analysing import analyse_table
from inference.analyses.matrices import columns_of
from inference.analyses.population import Population
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import Codes, Looks, Private, Table, Values, with_missing
from inference.false_reports.conformance import not_conforming
from inference.false_reports.details import Detail, detail_of
from inference.sampling import KEPT
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.words.text import counted
from schemas import Question, Report, Study
from summaries import QuestionSummary, Summary, check_study
from summaries.influence import FALSE_SHARE
from summaries.reducing import CheckedReports, good_reports
from summaries.reductions import sets_of
from summaries.reductions.choice import support_sets

# Their sets are read of all reports at once; of others, of each different payload.
_AT_ONCE = ("oue", "sue", "subset_selection", "olh")
MOST_CHOICES = 1000


def analyse(
    study: Study,
    reports: Iterable[Report],
    formula: str,
    *,
    family: str | None = None,
    priors: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    method: str = "nuts",
    draws: int = KEPT,
    progress: Callable[[str], None] | None = None,
    population: Population | None = None,
    false_reports: float = FALSE_SHARE,
) -> AnalysisPosterior:
    """Fit a formula over a study's questions and public fields; it costs no privacy.

    Args:
        study: the study that was answered.
        reports: its reports, each of which counts once.
        formula: such as "ever ~ age + region + (1 | clinic)", of question ids and public fields' ids.
        family: of the outcome, where not the usual one of its kind is wanted.
        priors: "flat", or {parameter: "flat" or a distribution}, in place of weakly informative ones.
        seed: as for `fit`.
        method: "nuts" or "laplace", as for `fit`.
        draws: that each of four chains keeps, as for `fit`.
        progress: told what is being fitted.
        population: over whom shares are also averaged: by group, weighted, or in a census.
        false_reports: the share of reports that may have come from anything at all, as for `fit`.

    Returns:
        Coefficients and what follows from them, named as bambi names them.

    Raises:
        ReportError: a report does not belong to the study.
        InputError: the formula, a prior or a report cannot be fitted.
    """
    options: dict[str, Any] = {"family": family, "priors": priors, "seed": seed, "method": method}
    options["false_reports"] = false_reports
    also = population.columns() if population else []
    table = table_of_reports(study, reports, [*columns_in(study, formula), *also])
    return analyse_table(table, formula, draws=draws, progress=progress, population=population, **options)


def columns_in(study: Study, formula: str) -> list[str]:
    """The question ids and public field ids that a formula names."""
    check_study(study)
    known = [*(question.id for question in study.questions), *(field.id for field in study.public)]
    return columns_of(formula, known)


def table_of_reports(study: Study, reports: Iterable[Report], names: Sequence[str]) -> Table:
    """Count a study's reports by these questions and public fields.

    Raises InputError for questions that cannot be analysed, and where no report answers them.
    """
    check_study(study)
    if isinstance(reports, Summary):
        raise InputError("a summary no longer has who said what: an analysis needs the reports themselves")
    asked = [question for question in study.questions if question.id in names]
    for question in asked:
        check_analysable(question)
    if study.ask_one and len(asked) > 1:
        raise InputError(
            f"each person answered one question of this study: no report has both {asked[0].id} and "
            f"{asked[1].id}, so nothing tells how they hang together"
        )
    fields = [field for field in study.public if field.id in names]
    seen: Counter[tuple[tuple[str, ...], tuple[bytes | None, ...]]] = Counter()
    for report in good_reports(study, reports):
        payloads = tuple(report.payloads.get(question.id) for question in asked)
        seen[tuple(_value(report, field.id) for field in fields), payloads] += 1
    others = sum(count for (_, payloads), count in seen.items() if asked and not any(payloads))
    keys = [key for key in seen if not asked or any(key[1])]
    if not keys:
        raise InputError(f"no report answers {' or '.join(question.id for question in asked) or 'the study'}")
    counts = np.asarray([seen[key] for key in keys], np.int64)
    public = pd.DataFrame(
        {field.id: _public(field, [key[0][place] for key in keys]) for place, field in enumerate(fields)},
        index=range(len(keys)),
    )
    private = {
        question.id: private_of(question, [key[1][place] for key in keys])
        for place, question in enumerate(asked)
    }
    notes = reports.notes() if isinstance(reports, CheckedReports) else ()
    if others:
        notes = (*notes, f"{counted(others, 'report')} answered another question and tell nothing here")
    noise = tuple(f"{question.id}: {mechanism_for(question).in_words()}" for question in asked)
    came = {one.id: [key[1][place] for key in keys] for place, one in enumerate(asked)}
    return Table(public, private, counts, notes, study.digest, noise, _doubts(asked, came, counts))


def _doubts(
    asked: Sequence[Question], payloads: Mapping[str, Sequence[bytes | None]], counts: Codes
) -> tuple[str, ...]:
    """Why the payloads of questions, so many of each, cannot all be what their mechanisms send."""
    mechanisms = {one.id: mechanism_for(one) for one in asked}
    parts: dict[str, QuestionSummary] = {}
    details: dict[str, Detail | None] = {}
    for name, mechanism in mechanisms.items():
        came = [place for place, payload in enumerate(payloads[name]) if payload is not None]
        joined = np.frombuffer(b"".join(payloads[name][place] or b"" for place in came), np.uint8)
        rows = np.repeat(joined.reshape(len(came), mechanism.payload_size), counts[came], axis=0)
        parts[name], details[name] = QuestionSummary.of(mechanism, rows), detail_of(mechanism, rows)
    found = not_conforming(mechanisms, parts, details.__getitem__)
    return tuple(reason for reasons in found.values() for reason in reasons)


def _value(report: Report, field: str) -> str:
    """A report's public value. Raises InputError where only the invitation had it."""
    if field not in report.public:
        raise InputError(
            f"report {report.id} has no {field}, which its invitation carried: export the reports from their "
            "collector, which adds it"
        )
    return report.public[field]


def check_analysable(question: Question) -> None:
    """Raises InputError unless its reports stand for sets of choices, of which there are not too many."""
    mechanism = mechanism_for(question)
    if not isinstance(mechanism, ChoiceMechanism):
        raise InputError(
            f"{question.id} asks for a {question.ask}: analyses take choices, yes or no, and public fields; "
            "`ldpkit fit` without a formula fits its own model"
        )
    if mechanism.choices > MOST_CHOICES:
        raise InputError(f"{question.id} has {mechanism.choices:,} choices: analyses take {MOST_CHOICES:,}")


def _public(field: Any, values: Sequence[str]) -> pd.Series | pd.Categorical:
    """A public field's column: its choices in the study's order, or numbers."""
    if field.choices:
        return pd.Categorical(values, categories=list(field.choices))
    return pd.Series([float(value) for value in values], dtype=np.float64)


def private_of(question: Question, payloads: Sequence[bytes | None]) -> Private:
    """A question's payloads as likelihood vectors: odds where the choice is in the report's set, else one.

    For randomized response these are the probabilities themselves; others leave out a factor that is the same
    for all choices. None is a missing payload.
    """
    mechanism = mechanism_for(question)
    assert isinstance(mechanism, ChoiceMechanism)
    answers = tuple(map(str, mechanism.labels))
    rows = np.asarray([place for place, payload in enumerate(payloads) if payload is not None], np.int64)
    joined = np.frombuffer(b"".join(payload for payload in payloads if payload is not None), np.uint8)
    sets = _sets(mechanism, joined.reshape(len(rows), mechanism.payload_size))
    distinct, where = np.unique(sets, axis=0, return_inverse=True)
    codes: Codes = np.full(len(payloads), -1, np.int64)
    codes[rows] = where.ravel()
    bits = np.unpackbits(distinct, axis=1, bitorder="little")[:, : mechanism.choices].astype(np.float64)
    p, q = float(mechanism.p), float(mechanism.q)
    alone = bool((bits.sum(axis=1) == 1).all()) and abs(p + (mechanism.choices - 1) * q - 1) < 1e-12
    odds = mechanism.odds[0] / mechanism.odds[1]
    vectors: Values = np.where(bits == 1, p, q) if alone else 1 + (odds - 1) * bits
    chances = np.where(np.eye(mechanism.choices) == 1, p, q)[None]
    looks = Looks(bits, np.zeros(len(bits), np.int64), chances, exclusive=alone)
    return with_missing(Private(question.id, answers, codes, vectors, exact=alone, looks=looks))


def _sets(mechanism: ChoiceMechanism, payloads: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Packed sets (n, ceil(choices / 8))."""
    return sets_of(mechanism, payloads) if mechanism.name in _AT_ONCE else support_sets(mechanism, payloads)
