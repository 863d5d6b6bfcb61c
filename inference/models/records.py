"""Linear and logistic regression from perturbed records (METHODS 5)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.likelihoods import PerturbedLinearRecords, PerturbedLogisticRecords
from inference.models import replicates
from inference.models.base import Model
from inference.models.clipping import Moments, beyond_bounds, clipping_notes, possible_clipping
from inference.models.regression import Scale, draw_sites, first_values
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.gaussian_record import GaussianNumberRecord, GaussianYesNoRecord
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.records import record_moments, record_rows


def linear(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance); independent of n."""
    record = cast(GaussianNumberRecord, mechanism)
    sums, squares = record_moments(record, summary.values)
    moments = np.block([[np.full((1, 1), float(summary.n)), sums[None]], [sums[:, None], squares]])
    sites = partial(draw_sites, question, True)

    def program(n: int, moments: Array) -> None:
        law = PerturbedLinearRecords(
            **sites(),
            feature_noise_sd=record.feature_noise_sd,
            response_noise_sd=record.response_noise_sd,
            total_count=n,
        )
        numpyro.sample("reports", law, obs=jnp.asarray(moments))

    start = first_values(len(question.features)) | {"sd": 0.5}
    notes = clipping_notes(question, _moments(record, summary.n, sums, squares))
    model = Model(program, {"n": summary.n, "moments": moments}, start, Scale(question).parameters, notes)
    return model if notes else replace(model, remarks=partial(possible_clipping, question))


def _moments(
    record: GaussianNumberRecord, n: int, sums: NDArray[np.float64], squares: NDArray[np.float64]
) -> Moments:
    """Of the clipped records: noise adds its variance to each square."""
    noise = np.append(np.full(len(sums) - 1, record.feature_noise_sd), record.response_noise_sd)
    seen = np.diag(squares) / max(n, 1)
    return Moments(sums / max(n, 1), seen - noise**2, seen * np.sqrt(2 / max(n, 1)), n)


def logistic(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """P(yes | x) = sigmoid(intercept + coefficients·x), x ~ Normal(mean, covariance); O(n d) a gradient.

    Raises InputError for a summary that holds no reports: nothing of fixed size is sufficient.
    """
    record = cast(GaussianYesNoRecord, mechanism)
    if summary.reports is None:
        raise InputError(f"{question.id}: no summary is exact for it: fit the reports themselves")
    rows = _rows(record, summary.reports)
    sites = partial(draw_sites, question, False)

    def program(rows: Array) -> None:
        law = PerturbedLogisticRecords(
            **sites(),
            feature_noise_sd=record.feature_noise_sd,
            p=float(record.p),
            q=float(record.q),
            # NumPyro cannot validate a value of no rows.
            validate_args=False,
        )
        numpyro.factor("reports", jnp.sum(law.log_prob(jnp.asarray(rows))))

    start = first_values(len(question.features))
    return Model(
        program,
        {"rows": rows},
        start,
        Scale(question).parameters,
        remarks=partial(beyond_bounds, question),
        replicates=replicates.records(record, rows),
    )


def _rows(record: GaussianYesNoRecord, reports: NDArray[np.uint8]) -> NDArray[np.float64]:
    features, responses = record_rows(record, reports)
    return np.column_stack([features, responses])
