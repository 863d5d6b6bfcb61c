"""Private numbers as predictors: a quadrature over the answer, clipped to its bounds, and the answer's law.

A formula takes the answer as it was clipped. Its places are those of Gauss and Legendre in panels, and the
bounds themselves. Laplace noise has a kink at the report: in the report's panel the polynomial through the
places is integrated against the noise, so that the rest of the integrand alone must be smooth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, pi, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from jax import Array
from numpy.polynomial.legendre import leggauss, legvander
from scipy import stats

from inference.analyses.cells import Cells, cuts_of
from inference.analyses.families import private_number_outcome
from inference.analyses.linear import Linear, linear_of
from inference.analyses.matrices import Matrix, again, combinations, evenly
from inference.analyses.naming import Parameters, Place, united
from inference.analyses.one_name import labels_of
from inference.analyses.private_numbers import NumberChannel
from inference.analyses.stated_priors import Given
from inference.analyses.table import Codes, Looks, Private, Values
from inference.analyses.varying import Group
from inference.likelihoods.numbers.base import ClippedNormal
from inference.models.base import Draws
from inference.priors.laws import Stated, law
from inference.results.tree import Axis

# Panels over the bounds at least, and one for so many scales of the noise.
FEWEST_PANELS, SCALES_A_PANEL = 3, 4.0
NODES = 24
# On each side of a report's kink; and reports at a time.
SUBNODES, AT_ONCE = 32, 4096
NAME = "number"
_NOISE = {"laplace": stats.laplace, "gaussian": stats.norm}


@dataclass(frozen=True)
class Quadrature:
    """points: (places,) from bound to bound, both included; lengths: those that each stands for, 0 at the
    bounds. edges: of the panels."""

    channel: NumberChannel
    points: Values
    lengths: Values
    edges: Values

    @classmethod
    def of(cls, channel: NumberChannel, finer: int = 1) -> Quadrature:
        """`finer` times as many panels as are enough where the law is not narrow."""
        panels = finer * max(FEWEST_PANELS, ceil(channel.width / channel.scale / SCALES_A_PANEL))
        edges = np.linspace(channel.low, channel.high, panels + 1)
        places, weights = leggauss(NODES)
        half = channel.width / panels / 2
        inside = ((edges[1:] + edges[:-1]) / 2)[:, None] + half * places
        points = np.concatenate([[channel.low], inside.ravel(), [channel.high]])
        return cls(channel, points, np.concatenate([[0], np.tile(half * weights, panels), [0]]), edges)

    def chances(self, reports: Values) -> Values:
        """(reports, places): what times a law's masses at the places adds up to the reports' densities."""
        found = _density(self.channel, reports[:, None] - self.points)
        if self.channel.noise != "laplace":
            return found
        panels = np.clip(np.searchsorted(self.edges, reports) - 1, 0, len(self.edges) - 2)
        for start in range(0, len(reports), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            own = 1 + panels[some, None] * NODES + np.arange(NODES)
            found[np.arange(len(reports))[some, None], own] = self._beside(reports[some], panels[some])
        return found

    def _beside(self, reports: Values, panels: Codes) -> Values:
        """Of the places in each report's own panel, by the Legendre moments of the noise's density."""
        half = (self.edges[1] - self.edges[0]) / 2
        middle = self.edges[panels] + half
        kink = (reports - middle) / half
        places, weights = leggauss(SUBNODES)
        sides = []
        for low, high in ((np.full_like(kink, -1.0), kink), (kink, np.ones_like(kink))):
            at = low[:, None] + (high - low)[:, None] * (places + 1) / 2
            noise = _density(self.channel, (reports - middle)[:, None] - half * at)
            weighted = noise * weights * (high - low)[:, None] / 2
            sides.append(np.einsum("rs,rsk->rk", weighted, legvander(at, NODES - 1)))
        basis = legvander(leggauss(NODES)[0], NODES - 1) * (np.arange(NODES) + 0.5)
        return np.asarray((sides[0] + sides[1]) @ basis.T)


def _density(channel: NumberChannel, away: Values) -> Values:
    """Of the noise."""
    if channel.noise == "laplace":
        return np.asarray(np.exp(-np.abs(away) / channel.scale) / (2 * channel.scale))
    return np.asarray(np.exp(-((away / channel.scale) ** 2) / 2) / (channel.scale * sqrt(2 * pi)))


def as_predictor(column: Private, finer: int = 1) -> Private:
    """A private number whose answers are the places of a quadrature."""
    assert column.channel is not None
    found = Quadrature.of(column.channel, finer)
    answers = tuple(repr(float(point)) for point in found.points)
    return replace(column, answers=answers, vectors=found.chances(column.vectors[:, 0]), points=found.points)


def expected_weights(column: Private) -> Values:
    """(places,) the shares of people at each, as reports estimate them without a law: for scales."""
    channel = column.channel
    assert channel is not None
    own = Quadrature.of(channel, _finer(column))
    return np.exp(np.asarray(log_masses(own, np.asarray(channel.mean), np.asarray(channel.sd))))


def _finer(column: Private) -> int:
    assert column.channel is not None
    assert column.points is not None
    return (len(column.points) - 2) // (len(Quadrature.of(column.channel).points) - 2)


def log_masses(own: Quadrature, mean: Array | Values, sd: Array | Values) -> Array:
    """log P(the answer is at each place), (…, places), of normal laws before clipping; they add up to 1."""
    channel = own.channel
    at = ClippedNormal(mean, sd, channel.low, channel.high)
    low, high = at.log_atoms()
    inner = ClippedNormal(jnp.asarray(mean)[..., None], jnp.asarray(sd)[..., None], channel.low, channel.high)
    inside = inner.log_density(jnp.asarray(own.points[1:-1])) + np.log(own.lengths[1:-1])
    found = jnp.concatenate([low[..., None], inside, high[..., None]], axis=-1)
    return found - jax.scipy.special.logsumexp(found, axis=-1, keepdims=True)


def looks_of_number(column: Private, source: Private, cells: Cells) -> Looks:
    """The parts of the range of a predictor's reports, which `source` has, and what shows in each."""
    assert column.channel is not None
    assert column.points is not None
    reports, noise = source.vectors[:, 0], _NOISE[column.channel.noise](0, column.channel.scale)
    cuts = cuts_of(reports[cells.reports[column.name]], cells.counts)
    below = noise.cdf(cuts - column.points[:, None])
    ends = np.zeros((len(below), 1))
    chances = np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)
    shows = np.eye(len(cuts) + 1)[np.searchsorted(cuts, reports)]
    return Looks(shows, np.zeros(len(reports), np.int64), chances[None])


@dataclass(frozen=True)
class NumberLaw:
    """The law of a private number that is a predictor: normal before it is clipped to its bounds.

    source: the column with its reports; column: with its places. choices: the private predictors beside it,
    given whose answers it is. public: the terms that no private answer changes. mean: of the law, by those
    and the choices' answers. sd_prior: of its sd, which is one for all.
    """

    source: Private
    column: Private
    own: Quadrature
    choices: tuple[Private, ...]
    public: Matrix
    mean: Linear
    groups: tuple[Group, ...]
    sd_prior: Stated

    @property
    def sd_name(self) -> str:
        """The parameter."""
        return f"{self.column.name}_sigma"

    def initial(self) -> dict[str, object]:
        """Where to start."""
        channel = self.own.channel
        own = {**self.mean.initial(np.asarray([channel.mean])), f"{NAME}_sd": channel.sd}
        return united(own, *(group.initial() for group in self.groups))

    def draw(self, data: Mapping[str, Array]) -> Array:
        """Inside a NumPyro program: log masses (cells, choices' combinations, places)."""
        eta = self.mean.draw(dict(data))
        for group in self.groups:
            eta += group.draw(dict(data))
        sd = numpyro.sample(f"{NAME}_sd", law(self.sd_prior))
        return log_masses(self.own, eta[..., 0], sd)

    def parameters(self, draws: Draws) -> Parameters:
        """{name: draws} of what the mean and its groups do not have."""
        return {self.sd_name: draws[f"{NAME}_sd"]}

    def place(self) -> Place:
        """Of that one."""
        return Place(self.sd_name, Axis(self.sd_name, {}), f"the sigma of {self.column.name}")

    def columns(self, values: Values) -> Values:
        """Of public terms (rows, 1, columns) the columns of the mean (rows, combinations, columns)."""
        return _by_choices(values, len(combinations(self.choices)))

    def masses(self, eta: Values, sd: Values) -> Values:
        """(…, combinations, places) at means (…, combinations) and sds that broadcast against those."""
        with jax.enable_x64(True):
            return np.exp(np.asarray(log_masses(self.own, jnp.asarray(eta), jnp.asarray(sd))))

    def again(self, rows: pd.DataFrame, predictors: Sequence[Private]) -> Values:
        """The columns of the mean over another frame."""
        return self.columns(again(self.public, rows, predictors))


def number_law_of(
    source: Private,
    column: Private,
    choices: tuple[Private, ...],
    public: Matrix,
    cells: Cells,
    given: Given,
    groups: tuple[Group, ...],
) -> NumberLaw:
    """The law, with the default priors that a private number has as an outcome."""
    assert column.channel is not None
    usual = private_number_outcome(column.name, column.channel, "normal")
    whole = combinations(choices)
    own = ":".join(one.name for one in choices)
    matrix = replace(
        public,
        values=_by_choices(public.values, len(whole)),
        centred=_by_choices(public.centred, len(whole)) if public.centred is not None else None,
        terms=(*public.terms, *[own] * (len(whole) - 1)),
        levels=(*public.levels, *labels_of(whole)[1:]),
        combinations=whole,
        chances=evenly(len(whole)),
    )
    lead = f"{column.name}_"
    mean = linear_of(NAME, matrix, cells.sizes, usual.scales, given, ("",), lead)
    prior = given.of([f"{column.name}_sigma"], usual.own[0].prior, "positive")[0]
    quadrature = Quadrature.of(column.channel, _finer(column))
    return NumberLaw(source, column, quadrature, choices, public, mean, groups, prior)


def _by_choices(values: Values, count: int) -> Values:
    """Public columns for each combination of choices, and a column for each but the first."""
    rows = np.broadcast_to(values, (len(values), count, values.shape[2]))
    levels = np.broadcast_to(np.eye(count)[:, 1:], (len(values), count, count - 1))
    return np.concatenate([rows, levels], axis=2)
