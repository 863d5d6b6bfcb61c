"""Fit a formula to the private questions and public fields of a study, or of several waves of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from inference.analyses.analysing import analyse_table
from inference.analyses.formula import known_column
from inference.analyses.population import Population
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.table import WAVE, Table
from inference.analyses.waves import concat, refuse_wave
from inference.results.posterior import Posterior
from inference.samplers import CHAINS
from inference.sampling import KEPT
from schemas import Study
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import Seen, study_of

Waves = Mapping[str, tuple[Study, Reports]]


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
    if list(waves) == [""]:
        study, given = waves[""]
        return table_of_reports(study, given, columns_in([study], formula, also))
    names = columns_in([study for study, _ in waves.values()], formula, also, WAVE)
    seen: dict[str, Seen] = {}
    tables: dict[str, Table] = {}
    for name, (study, given) in waves.items():
        known = [*(asked.id for asked in study.questions), *(field.id for field in study.public)]
        refuse_wave(name, known)
        own = [column for column in names if column != WAVE]
        for column in own:
            known_column(column, known, f"wave {name}: ")
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
