"""The model of a number without a law: any smooth density between the bounds, and mass at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods.common import CellCounts
from inference.likelihoods.numbers.noise import cells_channel
from inference.models.base import Draws, Model, Sampling, Truth
from inference.models.family import Family, Priors, draw, register
from inference.models.number import cell_edges, middle_cells
from inference.models.refusals import told_by, with_refusals
from inference.models.totals import approximation_notes, noisy_counts, noisy_moments, total_of
from inference.priors.laws import state
from inference.results.answer_law import AnswerLaw, Implied
from inference.units import number_units
from ldp_client import Mechanism
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

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition on multinomial counts of reports by cell: shares times the channel, exact for any n."""
        law = NonparametricLaw(question, summary.n)

        def middle(numbers: Mechanism) -> Values:
            starts, _ = grouped_channel(numbers, law.cells)
            return np.asarray(np.add.reduceat(middle_cells(numbers), starts))

        told = told_by(mechanism, summary, middle)
        starts, channel = grouped_channel(told.numbers, law.cells)
        values = told.values.reshape(2 if question.refusal else 1, -1)
        counts = np.add.reduceat(values, starts, axis=1).ravel()

        def program(n: int, counts: Array) -> None:
            shares = law.draw(draw(question, "roughness"))
            cells = shares @ channel
            logs = told.law(question, jnp.log(jnp.maximum(cells, np.finfo(cells.dtype).tiny)))
            numpyro.sample("reports", CellCounts(logs, n), obs=jnp.asarray(counts))

        data = {"n": summary.n, "counts": counts}
        return _model(law, program, data, start=told.start)

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition on a secure sum's total: of cells, or of the number and its square."""
        n, noise_sd, values = total_of(mechanism, summary)
        law = NonparametricLaw(question, n)
        cells = mechanism.size if isinstance(mechanism, SummedHistogram) else None
        seen = law.moments() if cells is None else law.in_cells(cells)

        def program(n: int, total: Array) -> None:
            found = law.draw(draw(question, "roughness")) @ seen
            counts = noisy_counts(found, n, noise_sd)
            sums = noisy_moments(found, n, noise_sd) if cells is None else counts
            numpyro.sample("reports", sums, obs=jnp.asarray(total))

        notes = (TWO_MOMENTS,) if cells is None else approximation_notes(n, noise_sd, values)
        return _model(law, program, {"n": n, "total": values}, notes)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        low, width = number_units(question)
        law = NonparametricLaw(question, n)
        found = low + width * law.sample(np.asarray(truth.sites["shares"]), n, random)
        return with_refusals(question, truth, found, random)


def grouped_channel(mechanism: Mechanism, cells: int) -> tuple[NDArray[np.int_], Values]:
    """Return the first cell of each group, and probabilities (cells + 2, groups) of reports in the groups."""
    edges, scale = cell_edges(mechanism)
    # Neighbours that are short compared with the noise are a group; each outer cell is its own.
    inner = len(edges) - 1
    wanted = int(np.ceil(GROUPS_PER_SCALE * (edges[-1] - edges[0]) / scale))
    groups = min(max(wanted, FEWEST_GROUPS), inner)
    starts = np.concatenate([[0], 1 + np.arange(groups) * inner // groups, [inner + 1]])
    return starts, np.add.reduceat(cells_channel(mechanism.name, scale, cells, edges), starts, axis=1)


def _model(
    law: NonparametricLaw,
    program: Any,
    data: dict[str, object],
    notes: tuple[str, ...] = (),
    start: Mapping[str, object] = {},
) -> Model:
    initial = {"shape": np.zeros(law.dimension), "roughness": 5.0, **start}

    def derived(sites: Draws) -> dict[str, Any]:
        return {"law": law.density(sites), "implied": law.implied(sites)}

    sampling = Sampling(may_diverge=MAY_DIVERGE, winding=True)
    return Model(program, data, initial, law.own, notes, derived=derived, sampling=sampling)


# Cells between the bounds for each unit of epsilon: each cell is short compared with the noise.
CELLS_PER_EPSILON, FEWEST_CELLS, MOST_CELLS = 16, 64, 256
# Location and scale of the log odds of a share at a bound: wide enough to allow both 0 and 1.
FEW, ODDS = -2.0, 4.0
# A share below this part of 1/√n is reported as 0: n reports cannot distinguish it from 0.
NOBODY = 0.05
QUANTILES = (0.05, 0.25, 0.75, 0.95)
# Values above which shares are reported, as parts of the bounds' distance.
PLACES = (0.1, 0.25, 0.5, 0.75, 0.9)


class NonparametricLaw:
    """The prior of the shares of n people, and the parameters reported from them, with the bounds at 0 and 1.

    The log density is roughness times a random walk, drawn as cosines no shorter than the cells resolve. As
    roughness approaches zero, the density between the bounds becomes uniform.
    """

    def __init__(self, question: Question, n: int) -> None:
        self._units, self._n = number_units(question), n
        wanted = round(CELLS_PER_EPSILON * float(question.mechanism.epsilon))
        self.cells = int(np.clip(wanted, FEWEST_CELLS, MOST_CELLS))
        middles = (np.arange(self.cells) + 0.5) / self.cells
        waves = np.arange(1, self.cells // 2 + 1)
        self._walk = np.sqrt(2) * np.cos(np.pi * waves * middles[:, None]) / waves
        self.points = np.concatenate([[0.0], middles, [1.0]])
        self.dimension = 2 + len(waves)

    def draw(self, roughness: Array) -> Array:
        """Draw the shares (cells + 2,) of the lower bound, each cell and the upper bound, in a program."""
        white = numpyro.sample("shape", dist.Normal(jnp.zeros(self.dimension), 1.0).to_event(1))
        logits = jnp.stack([FEW + ODDS * white[:2], jnp.zeros(2)])
        (low, high), (not_low, not_high) = jax.nn.softmax(logits, axis=0)
        density = roughness * (self._walk @ white[2:])
        parts = [low[None], not_low * not_high * jax.nn.softmax(density), (not_low * high)[None]]
        shares: Array = numpyro.deterministic("shares", jnp.concatenate(parts))
        return shares

    def own(self, draws: Draws) -> dict[str, Values]:
        """Return parameters in own units from draws of the shares (…, cells + 2)."""
        units, shares = self._units, _of_people(draws["shares"], self._n)
        mean = shares @ self.points
        square = shares @ (self.points**2) + shares[..., 1:-1].sum(axis=-1) / (12 * self.cells**2)
        below = np.cumsum(shares, axis=-1)
        found = {
            "mean": units.zero + units.unit * mean,
            "sd": units.unit * np.sqrt(np.maximum(square - mean**2, 0.0)),
            "median": units.zero + units.unit * self._quantile(below, 0.5),
        }
        for level in QUANTILES:
            found[f"quantile[{level:g}]"] = units.zero + units.unit * self._quantile(below, level)
        for place in PLACES:
            found[f"above[{units.zero + units.unit * place:g}]"] = 1 - self._below(below, place)
        return found

    def density(self, draws: Draws) -> AnswerLaw:
        """Return the density with its band, in own units."""
        edges = self._units.zero + self._units.unit * np.linspace(0.0, 1.0, self.cells + 1)
        return AnswerLaw.of(edges, _of_people(draws["shares"], self._n))

    def implied(self, draws: Draws) -> Implied:
        """Return the share above any value and the mean, in own units, from the same draws."""
        units, below = self._units, np.cumsum(_of_people(draws["shares"], self._n), axis=-1)
        return Implied(
            units.zero,
            units.zero + units.unit,
            lambda value: 1 - self._below(below, (value - units.zero) / units.unit),
            lambda: self.own(draws)["mean"],
        )

    def _quantile(self, below: Values, level: float) -> Values:
        """Return the quantile at a level, in 0 … 1, from cumulative shares `below` (…, cells + 2)."""
        index = np.clip((below < level).sum(axis=-1), 0, self.cells + 1)[..., None]
        after = np.take_along_axis(below, index, axis=-1)[..., 0]
        before = np.where(index > 0, np.take_along_axis(below, np.maximum(index - 1, 0), axis=-1), 0.0)[
            ..., 0
        ]
        part = (level - before) / np.maximum(after - before, 1e-300)
        return np.asarray(np.clip((index[..., 0] - 1 + np.clip(part, 0, 1)) / self.cells, 0.0, 1.0))

    def _below(self, below: Values, place: float) -> Values:
        cell = place * self.cells
        index = min(int(cell), self.cells - 1)
        part = cell - index
        return np.asarray(below[..., index] * (1 - part) + below[..., index + 1] * part)

    def sample(self, shares: Values, n: int, random: np.random.Generator) -> Values:
        """Draw answers (n,) in 0 … 1 from shares (cells + 2,)."""
        place = random.choice(len(shares), n, p=shares / shares.sum())
        inside = (place - 1 + random.random(n)) / self.cells
        return np.clip(np.where(place == 0, 0.0, inside), 0.0, 1.0)

    def moments(self) -> Values:
        """Return E[uᵏ], k = 1 … 4, in each bound and cell (cells + 2, 4), with the bounds at u = −1 and 1."""
        ends = np.linspace(-1.0, 1.0, self.cells + 1)
        powers = np.arange(1, 5)
        integrals = ends[:, None] ** (powers + 1) / (powers + 1)
        inside = np.diff(integrals, axis=0) * self.cells / 2
        return np.concatenate([(-1.0) ** powers[None], inside, np.ones((1, 4))])

    def in_cells(self, cells: int) -> Values:
        """Return the part (cells + 2, K) of each bound and cell within each of K equal cells."""
        ends, edges = np.linspace(0, 1, self.cells + 1), np.linspace(0, 1, cells + 1)
        overlap = np.minimum(ends[1:, None], edges[1:]) - np.maximum(ends[:-1, None], edges[:-1])
        first, last = np.eye(cells)[0], np.eye(cells)[-1]
        return np.vstack([first, np.maximum(overlap, 0.0) * self.cells, last])


def _of_people(shares: Values, n: int) -> Values:
    """Zero the share at a bound or between the bounds if n reports cannot distinguish it from 0."""
    parts = np.stack([shares[..., 0], shares[..., 1:-1].sum(axis=-1), shares[..., -1]], axis=-1)
    kept = np.where(parts * np.sqrt(n) < NOBODY, 0.0, 1.0) if n else np.ones_like(parts)
    inside = np.broadcast_to(kept[..., 1:2], (*shares.shape[:-1], shares.shape[-1] - 2))
    left = shares * np.concatenate([kept[..., :1], inside, kept[..., 2:]], axis=-1)
    return np.asarray(left / left.sum(axis=-1, keepdims=True))
