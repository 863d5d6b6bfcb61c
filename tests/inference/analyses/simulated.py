"""Small tables, files, studies and draws that tests of analyses share."""

import csv
import json

import jax
import numpy as np
import pandas as pd
from numpyro import handlers

from inference.analyses.design_file import read_design
from inference.analyses.private_columns import private_of
from inference.analyses.survey import survey_of
from inference.analyses.table import table_of
from ldp_client import mechanism_for
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from tests import studies
from tests.kit import reporting
from tests.kit.channels import known_channel

YES_NO = [[0.8, 0.2], [0.3, 0.7]]
FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
MATRIX = [["5/6", "1/6"], ["1/6", "5/6"]]
JOBS = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]
CHANNELS = {"ever": YES_NO, "smokes": YES_NO, "job": JOBS, "mood": JOBS}
ANSWERS = {
    "ever": ("no", "yes"),
    "smokes": ("no", "yes"),
    "job": ("none", "worker", "teacher"),
    "mood": ("low", "so", "high"),
}


def table(n=40):
    random = np.random.default_rng(0)
    public = pd.DataFrame(
        {
            "age": random.normal(40, 10, n).round(1),
            "region": pd.Categorical(random.choice(["east", "north", "west"], n)),
            "clinic": random.integers(0, 4, n),
            "cov.size": random.integers(0, 3, n),
            "income": random.normal(5, 2, n),
            "died": random.integers(0, 2, n),
            "visits": random.poisson(3, n),
        }
    )
    private = [
        known_channel(name, ANSWERS[name], random.integers(0, len(matrix), n), matrix, ordered=name == "mood")
        for name, matrix in CHANNELS.items()
    ]
    return table_of(public, private)


def forced(public, reports=None):
    """People with these public columns and reports of `armed`, no and yes in turn by default."""
    frame = pd.DataFrame(public)
    said = np.arange(len(frame)) % 2 if reports is None else reports
    return table_of(frame, [known_channel("armed", ("no", "yes"), said, FORCED)])


def rolled(random, truth):
    said = np.where(random.random(len(truth)) < 2 / 3, truth, random.random(len(truth)) < 0.5)
    return said.astype(int)


def sites_of(linear, coefficients):
    """The sites (…) at which a linear predictor with one output has these coefficients (…, columns)."""
    values, found = np.asarray(coefficients, float)[..., None], {}
    slopes = values[..., linear.columns, :]
    if linear.columns.size:
        found[f"{linear.site}_slopes"] = slopes * linear.spreads[:, None]
    if linear.intercept:
        intercept = values[..., linear.matrix.terms.index("Intercept"), :]
        found[f"{linear.site}_middle"] = intercept + linear.middles @ slopes
    return found


def any_draws(analysis, count=100):
    """Draws (1, count, …) of all sites of an analysis, from no law in particular."""
    random = np.random.default_rng(1)
    drawn = {name: random.normal(size=(1, count, *np.shape(one))) for name, one in analysis.initial().items()}
    return {name: np.abs(one) if "_sd_" in name else one for name, one in drawn.items()}


def design(**columns):
    """A design of these columns; one without a design or matrix of its own has MATRIX for no and yes."""
    usual = {"answers": ["no", "yes"], "reports": ["no", "yes"]}
    whole = {
        name: one
        if "design" in one
        else {**usual, **({} if {"matrices", "mixture"} & set(one) else {"matrix": MATRIX}), **one}
        for name, one in columns.items()
    }
    return json.dumps({"format": "ldpkit.design/1", "columns": whole})


def with_design(stated, counts):
    """A table of {(arm, report, x): people} under a design of q, whose answers and reports are no and yes."""
    rows = [key for key, count in counts.items() for _ in range(count)]
    whole = {"answers": ["no", "yes"], "reports": ["no", "yes"], **stated}
    return survey_of(pd.DataFrame(rows, columns=["arm", "q", "x"]), read_design(design(q=whole)))


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


PUBLIC = [
    {"id": "region", "choices": ["south", "north", "east"]},
    {"id": "age", "bounds": ["20", "60"], "step": "10"},
]
EVER = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}}
JOB = {**studies.CHOICE, "id": "job", "mechanism": {"name": "oue", "epsilon": "3"}}


def study_of(*questions, **fields):
    return Study({**studies.document(*map(dict, questions)), "public": PUBLIC, **fields})


def reports_of(study, n, seed=0):
    """Reports of n people of two regions and all ages, whose choices are even; numbers are 3."""
    random = np.random.default_rng(seed)
    people = [
        {
            "region": ("south", "north")[at % 2],
            "age": 20 + 10 * (at % 5),
            **{one.id: str(random.choice(one.choices)) if one.choices else 3 for one in study.questions},
        }
        for at in range(n)
    ]
    return reporting.reports_of(study, people)


LAPLACE = {**studies.NUMBER, "mechanism": {"name": "laplace", "epsilon": "2"}}
GAUSSIAN = {**studies.NUMBER, "mechanism": {"name": "gaussian", "epsilon": "2", "delta": "1e-6"}}
SHARP = {**studies.NUMBER, "mechanism": {"name": "laplace", "epsilon": "8"}}


def reported(question, answers, seed=1):
    own = Study(studies.document(question)).questions[0]
    mechanism = mechanism_for(own)
    source = NotForRealAnswers(np.random.default_rng(seed).bytes)
    payloads = randomise_many(mechanism, quantise_many(mechanism, answers), source)
    return private_of(own, [payload.tobytes() for payload in payloads])


def log_density(found, dtype=np.float64):
    """Sites -> the log-likelihood of all reports."""
    data = {name: np.asarray(one) for name, one in found.data(dtype).items()}

    def density(sites):
        trace = handlers.trace(handlers.substitute(found.program, data=sites)).get_trace(**data)
        return trace["reports"]["fn"].log_factor

    return density


def log_likelihood(found, sites):
    with jax.enable_x64(True):
        return float(jax.jit(log_density(found))(sites))
