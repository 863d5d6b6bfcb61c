"""Shares of an answer without a law: a density of any smooth shape between the bounds, and people at them."""

from __future__ import annotations

from typing import Any

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

# Cells between the bounds: so many for each unit of epsilon, so that each is short beside the noise.
CELLS_PER_EPSILON, FEWEST_CELLS, MOST_CELLS = 16, 64, 256
# Log-odds of a share at a bound, so wide that nobody there and everybody there can both be.
FEW, ODDS = -2.0, 4.0
# A share below this part of 1/√n, which no n reports can tell from none, is reported as nobody.
NOBODY = 0.05
QUANTILES = (0.05, 0.25, 0.75, 0.95)
# In parts of the bounds' distance: where shares above are reported.
PLACES = (0.1, 0.25, 0.5, 0.75, 0.9)


class FreeLaw:
    """The shares' prior and what is reported of them, for so many cells between bounds at 0 and 1.

    The logarithm of the density is roughness times a random walk, of which the cosines are drawn that are
    not short beside the cells: as roughness goes to zero all places between the bounds become alike.
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
        """Where a fit begins."""
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
        """Parameters in own units from draws of the shares (…, cells + 2), of n people."""
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
        """The density with its band, in own units."""
        edges = units.zero + units.unit * np.linspace(0.0, 1.0, self.cells + 1)
        return AnswerLaw.of(edges, _of_people(draws["shares"], n))

    def implied(self, draws: Draws, units: Units, n: int) -> Implied:
        """What the same draws say of the share above any value, in own units, and of the mean."""
        below = np.cumsum(_of_people(draws["shares"], n), axis=-1)
        return Implied(
            units.zero,
            units.zero + units.unit,
            lambda value: 1 - self._below(below, (value - units.zero) / units.unit),
            lambda: self.own(draws, units, n)["mean"],
        )

    def _quantile(self, below: Values, level: float) -> Values:
        """Where so much lies below, in 0 … 1; below (…, cells + 2): shares added up."""
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
        """Answers (n,) in 0 … 1 from shares (cells + 2,)."""
        place = random.choice(len(shares), n, p=shares / shares.sum())
        inside = (place - 1 + random.random(n)) / self.cells
        return np.clip(np.where(place == 0, 0.0, inside), 0.0, 1.0)

    def counted(self, scaled: Any) -> Values:
        """Counts (cells + 2,) of raw answers, whose bounds are 0 and 1."""
        values = np.asarray(scaled, np.float64)
        cell = np.floor(values * self.cells).astype(np.int64) + 1
        cell = np.where(values <= 0, 0, np.where(values >= 1, self.cells + 1, cell))
        return np.bincount(cell, minlength=self.cells + 2).astype(np.float64)

    def moments(self) -> Values:
        """E[uᵏ], k = 1 … 4, of each place (cells + 2, 4), where the bounds are u = −1 and u = 1."""
        ends = np.linspace(-1.0, 1.0, self.cells + 1)
        powers = np.arange(1, 5)
        integrals = ends[:, None] ** (powers + 1) / (powers + 1)
        inside = np.diff(integrals, axis=0) * self.cells / 2
        return np.concatenate([(-1.0) ** powers[None], inside, np.ones((1, 4))])

    def in_cells(self, cells: int) -> Values:
        """How much (cells + 2, K) of each place lies in each of K equal cells between the bounds."""
        ends, edges = np.linspace(0, 1, self.cells + 1), np.linspace(0, 1, cells + 1)
        overlap = np.minimum(ends[1:, None], edges[1:]) - np.maximum(ends[:-1, None], edges[:-1])
        first, last = np.eye(cells)[0], np.eye(cells)[-1]
        return np.vstack([first, np.maximum(overlap, 0.0) * self.cells, last])


def _of_people(shares: Values, n: int) -> Values:
    """The same shares, where too few at a bound, or between them, for n reports to tell are nobody."""
    parts = np.stack([shares[..., 0], shares[..., 1:-1].sum(axis=-1), shares[..., -1]], axis=-1)
    kept = np.where(parts * np.sqrt(n) < NOBODY, 0.0, 1.0) if n else np.ones_like(parts)
    inside = np.broadcast_to(kept[..., 1:2], (*shares.shape[:-1], shares.shape[-1] - 2))
    left = shares * np.concatenate([kept[..., :1], inside, kept[..., 2:]], axis=-1)
    return np.asarray(left / left.sum(axis=-1, keepdims=True))
