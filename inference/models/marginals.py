"""Mean and sd of every field of a record, from the sums of the first round of DCA Algorithm 2."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods import clipped
from inference.models.base import Draws, Model, Truth
from inference.models.family import Family, Priors, priors_of, register
from inference.models.plain_means import of_two_sums, two_sums_notes
from inference.models.totals import noisy_moments, signed_moments, total_of
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

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        n, noise_sd, values = total_of(mechanism, summary)
        total = values.reshape(-1, 2)

        zero, unit = np.asarray([field_units(field) for field in question.fields]).T

        def program(n: int, total: Array) -> None:
            priors, names = priors_of(question), [field.id for field in question.fields]
            means, sds = ([priors[key][name] for name in names] for key in ("mean", "sd"))
            mean = numpyro.sample("mean", vector_law(means, zero, unit))
            sd = numpyro.sample("sd", vector_law(sds, 0 * unit, unit))
            moments = signed_moments(clipped(dist.Normal(mean, sd), -1.0, 1.0))
            law = noisy_moments(moments, n, noise_sd)
            numpyro.sample("reports", law.to_event(1), obs=jnp.asarray(total))

        def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
            own = {"mean": zero + unit * draws["mean"], "sd": unit * draws["sd"]}
            return {
                f"{key}[{field.id}]": own[key][..., index]
                for key in own
                for index, field in enumerate(question.fields)
            }

        each = zip(question.fields, total, strict=True)
        plain = {field.id: of_two_sums(sums, n, noise_sd, *field_units(field)) for field, sums in each if n}
        start: dict[str, object] = {"mean": np.zeros(len(total)), "sd": np.full(len(total), 0.5)}
        return Model(program, {"n": n, "total": total}, start, parameters, two_sums_notes(plain))

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        found = truth.parameters
        names = [field.id for field in question.fields]
        return {name: random.normal(found[f"mean[{name}]"], found[f"sd[{name}]"], n) for name in names}
