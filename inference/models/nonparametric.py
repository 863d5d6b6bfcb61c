"""The model of a number without a law: any distribution between the bounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods.numbers.shares import SharesThroughChannel, noise_channel
from inference.likelihoods.numbers.totals import NoisyCounts, NoisyMoments
from inference.models.base import Draws, Model, Sampling, Truth
from inference.models.family import Family, Priors, Sets, draw, register
from inference.models.nonparametric_law import NonparametricLaw
from inference.models.number import cell_edges, middle_cells
from inference.models.refusals import (
    refusal_draws,
    refusal_notes,
    split_refused,
    told_by,
    with_refusals,
)
from inference.models.totals import SQUARE_WEIGHT, approximation_notes, total_of
from inference.priors.laws import state
from inference.units import number_units
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.summed_gaussian import SummedHistogram
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]

# Histograms are fitted with this many cells per noise scale, which loses a thousandth of their information.
GROUPS_PER_SCALE, FEWEST_GROUPS = 16, 64
# At the largest roughness the density is all peaks, and gradients are too steep for the step size that suits
# the bulk: up to one transition in thirty diverges there. With steps a third as long, means and shares move
# by at most a tenth of their sds, and intervals keep their stated coverage (`benchmarks.nonparametric`).
MAY_DIVERGE = 0.04
TWO_MOMENTS = (
    "this sum determines only the mean and the sd of the answers: quantiles and shares above follow from the "
    "prior and those two; a study with cells measures them"
)


@register
class Free(Family):
    """Shares of cells between the bounds, and of people at each bound, with a smooth density."""

    name = "nonparametric"
    reads = ("laplace", "gaussian")

    def priors(self, question: Question) -> Priors:
        del question
        return {"roughness": state("log_normal", loc=1.5, scale=0.75)}

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        """Condition on multinomial counts of reports by cell: shares times the channel, exact for any n."""
        del sets
        law = _law_of(question)
        told = told_by(mechanism, summary, partial(_grouped_middle, law.cells))
        starts, channel = grouped_channel(told.numbers, law.cells)
        values = told.values.reshape(2 if question.refusal else 1, -1)
        counts = np.add.reduceat(values, starts, axis=1).ravel()

        def program(n: int, counts: Array) -> None:
            shares = law.draw(draw(question, "roughness"))
            seen = told.law(question, SharesThroughChannel(shares, channel, n), n)
            numpyro.sample("reports", seen, obs=jnp.asarray(counts))

        data = {"n": summary.n, "counts": counts}
        return _model(question, law, program, data, refusal_notes(question), told.start)

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition on a secure sum's total: of cells, or of the number and its square."""
        law = _law_of(question)
        n, noise_sd, values = total_of(mechanism, summary)
        cells = mechanism.size if isinstance(mechanism, SummedHistogram) else None
        seen = law.moments() if cells is None else law.in_cells(cells)

        def program(n: int, total: Array) -> None:
            found = law.draw(draw(question, "roughness")) @ seen
            counts = NoisyCounts(found, n, noise_sd)
            sums = NoisyMoments(found, n, noise_sd, SQUARE_WEIGHT) if cells is None else counts
            numpyro.sample("reports", sums, obs=jnp.asarray(total))

        notes = (TWO_MOMENTS,) if cells is None else approximation_notes(n, noise_sd, values)
        return _model(question, law, program, {"n": n, "total": values}, notes)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        low, width = number_units(question)
        found = low + width * _law_of(question).sample(np.asarray(truth.sites["shares"]), n, random)
        return with_refusals(question, truth, found, random)

    def completed(self, drawn: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
        """Reject given parameters: a mean or a share does not determine the shape."""
        given, stated = split_refused(given)
        if given:
            raise InputError(
                f"parameters of the model {self.name!r} cannot be set: its truths are drawn from its prior. "
                "Name a law to plan for a truth of your own",
                code="plan.truth_of_free_model",
            )
        return {**drawn, **stated}


def _grouped_middle(cells: int, mechanism: Mechanism) -> Values:
    starts, _ = grouped_channel(mechanism, cells)
    return np.asarray(np.add.reduceat(middle_cells(mechanism), starts))


def grouped_channel(mechanism: Mechanism, cells: int) -> tuple[NDArray[np.int_], Values]:
    """Return the first cell of each group, and probabilities (cells + 2, groups) of reports in the groups."""
    edges, scale = cell_edges(mechanism)
    starts = _group_starts(edges, scale)
    return starts, np.add.reduceat(noise_channel(mechanism.name, scale, cells, edges), starts, axis=1)


def _law_of(question: Question) -> NonparametricLaw:
    return NonparametricLaw(float(question.mechanism.epsilon))


def _group_starts(edges: Values, scale: float) -> NDArray[np.int_]:
    """Return the first cells of groups of neighbours that are short compared with the noise.

    Each outer cell is its own group.
    """
    cells = len(edges) - 1
    wanted = int(np.ceil(GROUPS_PER_SCALE * (edges[-1] - edges[0]) / scale))
    groups = min(max(wanted, FEWEST_GROUPS), cells)
    return np.concatenate([[0], 1 + np.arange(groups) * cells // groups, [cells + 1]])


def _model(
    question: Question,
    law: NonparametricLaw,
    program: Any,
    data: dict[str, object],
    notes: tuple[str, ...] = (),
    start: Mapping[str, object] = {},
) -> Model:
    units = number_units(question)
    initial = {**law.start, "roughness": 5.0, **start}
    n = int(np.sum(np.asarray(data.get("n", data.get("counts")))))

    def own(draws: Draws) -> dict[str, Values]:
        return {**law.own(draws, units=units, n=n), **refusal_draws(question, draws)}

    def derived(sites: Draws) -> dict[str, Any]:
        return {
            "law": law.density(sites, units=units, n=n),
            "implied": law.implied(sites, units=units, n=n),
        }

    sampling = Sampling(may_diverge=MAY_DIVERGE, winding=True)
    return Model(program, data, initial, own, notes, derived=derived, sampling=sampling)
