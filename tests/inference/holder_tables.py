"""A study of data holders' tables, such tables, and what they report."""

from __future__ import annotations

import copy

import numpy as np

from inference import Summary, summarize
from inference.models.from_reports import holder_statistics
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.kit.reporting import reports_of

TABLE = {
    "id": "wage",
    "ask": "table",
    "features": studies.FEATURES,
    "norm": "1",
    "response": {"id": "rate", "bounds": ["1", "5"]},
    "mechanism": {"name": "table_statistics", "epsilon": "4", "delta": "1e-6"},
    "model": {"name": "linear_regression"},
}
SLOPES, INTERCEPT, SD = np.array([0.02, -0.05]), 2.5, 0.35


def study_of(mechanism=None, prior=None):
    question = copy.deepcopy(TABLE)
    question["mechanism"] = mechanism or question["mechanism"]
    if prior:
        question["model"]["prior"] = prior
    return Study(studies.document(question, respondent="holder"))


def table(random, n):
    age, years = random.normal(29.0, 4.0, n), random.normal(11.0, 3.5, n)
    rate = INTERCEPT + SLOPES[0] * age + SLOPES[1] * years + random.normal(0, SD, n)
    return {"age": age, "years": years, "rate": rate}


def statistics_of(study, tables):
    question = study.questions[0]
    summary = summarize(study, reports_of(study, tables)) if tables else Summary.empty(study)
    part = summary.questions["wage"]
    return holder_statistics(mechanism_for(question), part)


def tables_of(sizes, seed=1):
    random = np.random.default_rng(seed)
    return [table(random, n) for n in sizes]
