"""Fit a formula to the private questions and public fields of a study, or of several waves of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.analysing import analyse_table
from inference.analyses.formula import known_column
from inference.analyses.matrices import columns_of
from inference.analyses.population import Population
from inference.analyses.private_columns import private_of
from inference.analyses.table import WAVE, Table, concat, refuse_wave
from inference.false_reports.conformance import conformance
from inference.false_reports.details import Details
from inference.results.methods import noise_of
from inference.results.posterior import Posterior
from inference.samplers import CHAINS, KEPT
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError, SummaryError
from ldp_client.explain import in_words
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.words.text import counted
from schemas import Question, Report, Study
from summaries import Summary, cell_summaries, check_study
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import Seen, reduce_reports, study_of
from summaries.reductions import REDUCTIONS
from summaries.reductions.choice import keeps_patterns

Waves = Mapping[str, tuple[Study, Reports]]
MOST_CHOICES = 1000
# {(public values, payload of each question): how many reports}.
Rows = Counter[tuple[tuple[str, ...], tuple[bytes, ...]]]


def analyse(
    study: Study | str | PathLike[str],
    reports: Reports,
    formula: str,
    *,
    family: str | None = None,
    priors: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    method: str | None = None,
    draws: int = KEPT,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
    population: Population | None = None,
) -> Posterior:
    """Fit a formula over a study's questions and public fields. This costs no privacy budget.

    Args:
        study: the study that was answered, or the path of its file.
        reports: its reports, as `fit` takes them; or their Summary, for one private question alone.
        formula: such as "ever ~ age + region + (1 | clinic)", with ids of questions and public fields.
        family: the outcome's family, if the usual one for its kind is unsuitable.
        priors: "flat", or {parameter: "flat" or a distribution}.
        seed: as for `fit`.
        method: as for `fit`; None is "nuts", but "gaussian_approx" for very many reports if it is accurate.
        draws: the number that each chain keeps.
        chains: the number of chains, from 2 to 64.
        progress: a function that receives what is being fitted.
        population: the people over whom shares are also averaged: by group, weighted, or in a census.

    Returns:
        The coefficients and the quantities that follow from them, named as bambi names them.

    Raises:
        ReportError: a report does not belong to the study.
        SummaryError: the summary is of another study, or not kept by cell.
        InputError: the formula, a prior or a report cannot be fitted.
    """
    return analyse_waves(
        {"": (study_of(study), reports)},
        formula,
        family=family,
        priors=priors,
        seed=seed,
        method=method,
        draws=draws,
        chains=chains,
        progress=progress,
        population=population,
    )


def analyse_waves(waves: Waves, formula: str, **options: Any) -> Posterior:
    """Fit a formula over several waves of a study; `wave` is an added public field.

    Args:
        waves: {name: (the study of this wave, its reports, as `fit` takes them)}; the first wave is the
            reference.
        formula: such as "ever ~ wave + region", with question ids and public fields that every wave has.
        options: as for `analyse`.

    Returns:
        The same as `analyse`, with a difference between each two waves.

    Raises:
        ReportError: a report does not belong to its wave's study.
        InputError: choices differ between waves, a report is in two of them, or as for `analyse`.
    """
    population = options.get("population")
    return analyse_table(
        table_of_waves(waves, formula, population.columns() if population else []), formula, **options
    )


def table_of_waves(waves: Waves, formula: str | None, also: Sequence[str] = ()) -> Table:
    """Count the reports of all waves by a formula's questions and public fields, by `also`, and by wave.

    A single wave is called "". Raises InputError for another single wave, for a name that a wave lacks, for
    choices that differ, and for a report in two waves.
    """
    known = {}
    for name, (study, _) in waves.items():
        check_study(study)
        known[name] = [*(question.id for question in study.questions), *(field.id for field in study.public)]
    single = list(waves) == [""]
    every = [*chain.from_iterable(known.values()), *([] if single else [WAVE])]
    names = columns_of(formula, list(dict.fromkeys(every)), also)
    if single:
        return table_of_reports(*waves[""], names)
    seen: dict[str, Seen] = {}
    tables: dict[str, Table] = {}
    for name, (study, given) in waves.items():
        refuse_wave(name, known[name])
        own = [column for column in names if column != WAVE]
        for column in own:
            known_column(column, known[name], f"wave {name}: ")
        reports = evidence_of(study, given)
        if isinstance(reports, ReadReports):
            reports.read_elsewhere = frozenset(other.digest for other, _ in waves.values())
        tables[name] = table_of_reports(study, reports, own, seen.setdefault(study.digest, Seen()))
    table = concat(tables, names)
    return replace(table, notes=(*table.notes, *_notes([study for study, _ in waves.values()], names)))


def _notes(studies: Sequence[Study], names: Sequence[str]) -> Iterator[str]:
    """Yield notes on questions that differ between waves, and on waves that may share people."""
    for name in (question.id for question in studies[0].questions if question.id in names):
        asked = [study.question(name) for study in studies]
        if len({(one.text, one.list_title) for one in asked}) > 1:
            yield f"{name} is worded differently between waves: a difference may be due to the wording"
        if len({one.unit for one in asked}) > 1:
            stated = ", ".join(one.unit or "nothing stated" for one in asked)
            yield f"{name} is measured in different units ({stated}): differences may mean nothing"
        if any(one.repeats for one in asked):
            yield (
                f"{name} may be answered by the same people in several waves, from one kept answer. Waves "
                "are treated as different people: joint results are too certain, and differences are "
                "uncertain enough"
            )


def table_of_reports(study: Study, given: Reports, names: Sequence[str], seen: Seen | None = None) -> Table:
    """Count a study's reports, or its summary by cell, by these questions and public fields.

    given: as `fit` takes reports. seen: reports of other waves, in which none of these may be. Raises
    InputError for questions that cannot be analysed, and if no report answers them.
    """
    # 1. What is asked.
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
        are_sets = isinstance(reports, Summary) and not _keeps_payloads(mechanisms[question.id])
        private[question.id] = private_of(question, [payloads[at] for _, payloads in rows], are_sets)
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
    keeps_payloads = _keeps_payloads(mechanism)
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
    size = mechanism.payload_size if keeps_payloads else -(-mechanism.choices // 8)
    for cell, parts in cells.items():
        for value in np.flatnonzero(parts[question.id].values):
            payload = int(value).to_bytes(size, "big" if keeps_payloads else "little")
            rows[tuple(cell[at] for at in places), (payload,)] += int(parts[question.id].values[value])
    return rows


def _keeps_payloads(mechanism: Mechanism) -> bool:
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
