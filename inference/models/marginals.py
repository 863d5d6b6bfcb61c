"""Mean and sd of every field of a record, from the sums of the first round of DCA Algorithm 2."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods import ClippedNormal
from inference.likelihoods.numbers.totals import NoisyMoments, signed_moments
from inference.models.base import Draws, Model, Truth
from inference.models.family import Family, Priors, Sets, priors_of, register
from inference.models.plain_means import PlainMean, of_two_sums, two_sums_notes
from inference.models.totals import SQUARE_WEIGHT, total_of
from inference.priors.laws import state, vector_law
from inference.units import field_units
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary


@register
class Marginals(Family):
    """mean[field], sd[field]: each field x ~ Normal(mean, sd), clipped to its bounds.

    Every field has separate parameters and the exact first two moments of its sums. Each field's posterior
    therefore depends on its own sums alone; correlations between fields are ignored.
    """

    name = "marginals"
    reads = ("summed_gaussian",)

    def priors(self, question: Question) -> Priors:
        spans = [(field.id, *field_units(field)) for field in question.fields]
        return {
            "mean": {name: state("normal", loc=zero, scale=2 * unit) for name, zero, unit in spans},
            "sd": {name: state("gamma", shape=2.0, rate=2.0 / unit) for name, _, unit in spans},
        }

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        del sets
        n, noise_sd, values = total_of(mechanism, summary)
        total = values.reshape(-1, 2)

        def program(n: int, total: Array) -> None:
            mean, sd = _sites(question)
            moments = signed_moments(ClippedNormal(mean, sd, -1.0, 1.0))
            law = NoisyMoments(moments, n, noise_sd, SQUARE_WEIGHT)
            numpyro.sample("reports", law.to_event(1), obs=jnp.asarray(total))

        def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
            return _own(question, draws)

        start = _start(total / max(n, 1))
        notes = two_sums_notes(_plain_means(question, total, n, noise_sd) if n else {})
        return Model(program, {"n": n, "total": total}, start, parameters, notes)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        found = truth.parameters
        names = [field.id for field in question.fields]
        return {name: random.normal(found[f"mean[{name}]"], found[f"sd[{name}]"], n) for name in names}


def _sites(question: Question) -> tuple[Array, Array]:
    """Draw mean and sd (fields,) of a record's fields, with the bounds at −1 and 1."""
    priors, fields = priors_of(question), question.fields
    zero, unit = np.asarray([field_units(field) for field in fields]).T
    means, sds = ([priors[key][field.id] for field in fields] for key in ("mean", "sd"))
    mean = numpyro.sample("mean", vector_law(means, zero, unit))
    return mean, numpyro.sample("sd", vector_law(sds, 0 * unit, unit))


def _plain_means(
    question: Question, total: NDArray[np.float64], n: int, noise_sd: float
) -> dict[str, PlainMean]:
    return {
        field.id: of_two_sums(sums, n, noise_sd, *field_units(field))
        for field, sums in zip(question.fields, total, strict=True)
    }


def _own(question: Question, draws: Draws) -> dict[str, NDArray[np.float64]]:
    fields = question.fields
    units = [field_units(field) for field in fields]
    own = {
        f"mean[{field.id}]": zero + unit * draws["mean"][..., index]
        for index, (field, (zero, unit)) in enumerate(zip(fields, units, strict=True))
    }
    return own | {
        f"sd[{field.id}]": unit * draws["sd"][..., index]
        for index, (field, (_, unit)) in enumerate(zip(fields, units, strict=True))
    }


def _start(means: NDArray[np.float64]) -> dict[str, object]:
    """Return starting values by moments from the means (fields, 2) of x and of 3/2 x²."""
    mean = np.clip(means[:, 0], -0.95, 0.95)
    variance = np.clip(means[:, 1] / SQUARE_WEIGHT - mean**2, 0.01, 1.0)
    return {"mean": mean, "sd": np.sqrt(variance)}
