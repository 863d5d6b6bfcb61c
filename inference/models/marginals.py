"""Mean and sd of every field of a record, from the sums of the first round of DCA Algorithm 2."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.likelihoods import ClippedNormal
from inference.likelihoods.numbers.total_moments import NoisyMoments, signed_moments
from inference.models.base import Draws, Model
from inference.models.summed import SQUARE_WEIGHT, total_of
from inference.units import field_units, fields_of
from ldp_client import Mechanism
from ldp_client.mechanisms.summed import SummedMechanism
from schemas import Question
from summaries import QuestionSummary


def marginals(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """mean[field], sd[field]: each field x ~ Normal(mean, sd), clipped to its bounds.

    Every field has parameters of its own and its sums' exact first two moments, so each field's posterior
    is that of its own sums; what fields have in common is left out.
    """
    fields = fields_of(question)
    n, noise_sd, values = total_of(cast(SummedMechanism, mechanism), summary)

    def program(n: int, total: Array) -> None:
        mean, sd = priors.marginals(question)
        moments = signed_moments(ClippedNormal(mean, sd, -1.0, 1.0))
        law = NoisyMoments(moments, n, noise_sd, SQUARE_WEIGHT)
        numpyro.sample("reports", law.to_event(1), obs=jnp.asarray(total))

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        units = [field_units(field) for field in fields]
        own = {
            f"mean[{field.id}]": zero + unit * draws["mean"][..., index]
            for index, (field, (zero, unit)) in enumerate(zip(fields, units))
        }
        own |= {
            f"sd[{field.id}]": unit * draws["sd"][..., index]
            for index, (field, (_, unit)) in enumerate(zip(fields, units))
        }
        return own

    total = values.reshape(-1, 2)
    return Model(program, {"n": n, "total": total}, _start(total / max(n, 1)), parameters)


def _start(means: NDArray[np.float64]) -> dict[str, object]:
    """By moments; means (fields, 2): of x and of 3/2 x²."""
    mean = np.clip(means[:, 0], -0.95, 0.95)
    variance = np.clip(means[:, 1] / SQUARE_WEIGHT - mean**2, 0.01, 1.0)
    return {"mean": mean, "sd": np.sqrt(variance)}
