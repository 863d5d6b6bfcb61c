"""The distribution of an answer without a law: any smooth density between the bounds, and mass at them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference.models.base import Draws
from inference.results.answer_law import AnswerLaw, Implied
from inference.units import Units

Values = NDArray[np.float64]

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
    """The prior of the shares, and the parameters reported from them, with the bounds at 0 and 1.

    The log density is roughness times a random walk, drawn as cosines no shorter than the cells resolve. As
    roughness approaches zero, the density between the bounds becomes uniform.
    """

    def __init__(self, epsilon: float) -> None:
        wanted = round(CELLS_PER_EPSILON * epsilon)
        self.cells = int(np.clip(wanted, FEWEST_CELLS, MOST_CELLS))
        middles = (np.arange(self.cells) + 0.5) / self.cells
        waves = np.arange(1, self.cells // 2 + 1)
        self._walk = np.sqrt(2) * np.cos(np.pi * waves * middles[:, None]) / waves
        self.points = np.concatenate([[0.0], middles, [1.0]])
        self.dimension = 2 + len(waves)

    @property
    def start(self) -> dict[str, object]:
        """Return the starting values of a fit."""
        return {"shape": np.zeros(self.dimension)}

    def draw(self, roughness: Array) -> Array:
        """Draw the shares (cells + 2,) of the lower bound, each cell and the upper bound, in a program."""
        white = numpyro.sample("shape", dist.Normal(jnp.zeros(self.dimension), 1.0).to_event(1))
        logits = jnp.stack([FEW + ODDS * white[:2], jnp.zeros(2)])
        (low, high), (not_low, not_high) = jax.nn.softmax(logits, axis=0)
        density = roughness * (self._walk @ white[2:])
        parts = [low[None], not_low * not_high * jax.nn.softmax(density), (not_low * high)[None]]
        shares: Array = numpyro.deterministic("shares", jnp.concatenate(parts))
        return shares

    def own(self, draws: Draws, units: Units, n: int) -> dict[str, Values]:
        """Return parameters in own units from draws of the shares (…, cells + 2), of n people."""
        shares = _of_people(draws["shares"], n)
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

    def density(self, draws: Draws, units: Units, n: int) -> AnswerLaw:
        """Return the density with its band, in own units."""
        edges = units.zero + units.unit * np.linspace(0.0, 1.0, self.cells + 1)
        return AnswerLaw.of(edges, _of_people(draws["shares"], n))

    def implied(self, draws: Draws, units: Units, n: int) -> Implied:
        """Return the share above any value and the mean, in own units, from the same draws."""
        below = np.cumsum(_of_people(draws["shares"], n), axis=-1)
        return Implied(
            units.zero,
            units.zero + units.unit,
            lambda value: 1 - self._below(below, (value - units.zero) / units.unit),
            lambda: self.own(draws, units, n)["mean"],
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
