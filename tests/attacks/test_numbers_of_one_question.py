"""Ask each device one of several questions, and use a number in a formula: it used to end in a traceback."""

from __future__ import annotations

from random import Random

import numpy as np

from inference.analyses.analysing import analyse_table
from inference.analyses.population import Population
from inference.analyses.reports import table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import Table
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from tests import studies

HOURS = {**studies.NUMBER, "id": "hours", "mechanism": {"name": "laplace", "epsilon": "4"}}
PUBLIC = [{"id": "region", "choices": ["n", "s"]}]
PEOPLE, HIGHEST = 1200, 12


def reports_of() -> Table:
    """Those in the south work longer, by a quarter of the bounds."""
    study = Study(studies.document(studies.YES_NO, HOURS, sample_one_question=True, public=PUBLIC))
    mechanisms, source = mechanisms_of(study), NotForRealAnswers(Random(3).randbytes)
    rng = np.random.default_rng(3)
    reports = []
    for person in range(PEOPLE):
        hours = HIGHEST * rng.normal(0.4 + 0.25 * (person % 2), 0.1)
        answers = {"ever": person % 3 == 0, "hours": float(hours), "region": "ns"[person % 2]}
        reports.append(perturb_answers(study, mechanisms, answers, source))
    return table_of_reports(study, reports, ["hours", "region"])


def found(table: Table, formula: str, over: Population | None = None) -> AnalysisPosterior:
    return analyse_table(table, formula, method="gaussian_approx", population=over)


def test_reports_on_other_question_are_left_out() -> None:
    assert 0.4 * PEOPLE < reports_of().n < 0.6 * PEOPLE


def test_fit_recovers_simulated_difference() -> None:
    slope = found(reports_of(), "hours ~ region", Population(by="region"))["region[s]"]
    assert abs(slope.mean - HIGHEST / 4) < 4 * slope.sd < HIGHEST / 8
