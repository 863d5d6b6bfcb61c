"""Fit a formula to a study's private questions and public fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from inference.analyses.analysing import analyse_table
from inference.analyses.population import Population
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.samplers import CHAINS
from inference.sampling import KEPT
from schemas import Study
from summaries.reading import Reports, evidence_of
from summaries.reducing import study_of


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
) -> AnalysisPosterior:
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
    study = study_of(study)
    columns = columns_in([study], formula, population.columns() if population else ())
    table = table_of_reports(study, evidence_of(study, reports), columns)
    return analyse_table(
        table,
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
