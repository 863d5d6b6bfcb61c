"""The law of features with levels: a number cut into bins, one of a few choices, or a yes/no.

The levels of all features give cells. The cells' shares are log-linear with all pairs of effects; bins have
linear and quadratic trends in pairs. A transform along each field maps the cells to the exact means of all
products of two entries (Cormode, Kulkarni & Srivastava 2018 for yes/no fields).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import helmert

from inference.models.base import Draws
from inference.models.regression import Features, Regression
from inference.results.verdict import listed
from inference.units import YES_NO_UNITS, field_units
from ldp_client.documents.question import Field
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question

Values = NDArray[np.float64]
# Prior of effects on log shares of cells: Student's t with these degrees of freedom, and a scale for pairs as
# a part of the effects' scales. If all features are yes/no, main effects are normal and pairs half as large.
TAILS, PAIR, YES_NO_PAIR = 4.0, 0.5, 0.25
# Number of a bin's trends that depend on other fields.
TRENDS = 2
# Within a bin the density is modelled as exponential; its log changes at most this much from middle to end.
STEEPEST = 8.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


class Levels:
    """One feature with k levels.

    yes_no: whether the levels are no and yes. codes (k, m): each level's entries. effects (k, k − 1):
    directions of the log shares; scales (k − 1,): their prior scales. paired: number of effects that depend
    on other fields. columns (k, s): scaled columns of the line, for a choice or yes/no. ends (k + 1,),
    middle, half: the bins' edges, middles and half widths, scaled; empty unless the feature is a number.
    """

    def __init__(self, field: Field, codes: Sequence[Sequence[int]]) -> None:
        self.yes_no = not (field.cuts or field.choices)
        self.codes = np.asarray([[-1], [1]] if self.yes_no else codes, np.float64)
        self.size = len(self.codes)
        self.ends = _ends(field) if field.cuts else np.zeros(0)
        self.middle, self.half = (self.ends[:-1] + self.ends[1:]) / 2, np.diff(self.ends) / 2
        self.log_width = np.log(2 * self.half) if field.cuts else np.zeros(self.size)
        if field.cuts:
            # Orthogonal polynomials of degrees 1 to k − 1: mean square 1, last value positive.
            basis, _ = np.linalg.qr(np.polynomial.chebyshev.chebvander(self.middle, self.size - 1))
            trends = basis[:, 1:] * np.sqrt(self.size)
            self.effects = trends * np.sign(trends[-1])
        else:
            self.effects = self.codes if self.yes_no else np.sqrt(self.size) * helmert(self.size).T
        self.scales = 1 / np.arange(1.0, self.size) if field.cuts else np.ones(self.size - 1)
        self.paired = min(TRENDS, self.size - 1) if field.cuts else self.size - 1
        # 0 and 1 in own units; scaled as in RecordUnits.
        self.columns = (np.eye(self.size)[:, 1:] - 1 / self.size) / YES_NO_UNITS.unit

    def steepness(self, shares: Any, numpy: Any = np) -> Any:
        """Return the log density's rise from each bin's middle to its end, from the shares (..., k)."""
        before, after = [0, *range(self.size - 1)], [*range(1, self.size), self.size - 1]
        # Not cached: JAX constants traced under one precision are invalid under another.
        ratio = numpy.asarray(self.half / (self.middle[after] - self.middle[before]))
        height = numpy.log(numpy.maximum(shares, 1e-12)) - numpy.asarray(self.log_width)
        steps = (height[..., np.asarray(after)] - height[..., np.asarray(before)]) * ratio
        return STEEPEST * numpy.tanh(steps / STEEPEST)

    def within(self, shares: Array) -> tuple[Array, Array]:
        """Return mean and variance of the number within each bin, (..., k), scaled."""
        steep = self.steepness(shares, jnp)[..., None]
        nodes, weights = jnp.asarray(NODES), jnp.asarray(WEIGHTS)
        weight = weights * jnp.exp(steep * nodes - abs(steep))
        weight = weight / weight.sum(axis=-1, keepdims=True)
        mean = (weight * nodes).sum(axis=-1)
        variance = (weight * nodes**2).sum(axis=-1) - mean**2
        half = jnp.asarray(self.half)
        return jnp.asarray(self.middle) + half * mean, half**2 * variance


def _ends(field: Field) -> Values:
    assert field.bounds is not None
    low, *cuts, high = (float(end) for end in (field.bounds[0], *field.cuts, field.bounds[1]))
    zero, unit = field_units(field)
    return (np.asarray([low, *cuts, high]) - zero) / unit


def levels_of(mechanism: SampledProducts) -> list[Levels]:
    return [Levels(field, codes) for field, codes in zip(mechanism.features, mechanism.codes, strict=True)]


def scales(fields: Sequence[Levels]) -> tuple[Values, Values]:
    """Return the prior scales of the main effects of fields, and of their pair effects."""
    pairs = [
        np.outer(one.scales[: one.paired], other.scales[: other.paired]).ravel()
        for one, other in combinations(fields, 2)
    ]
    return np.concatenate([field.scales for field in fields]), np.concatenate([np.zeros(0), *pairs])


def law_of_features(question: Question, mechanism: SampledProducts) -> Features:
    """Return the law of a question's features, with the shares of all fields' levels as the site `shares`."""
    fields = levels_of(mechanism)

    alone, pairs = scales(fields)
    yes_no = all(field.yes_no for field in fields)

    def draw() -> tuple[Array]:
        of_main = dist.Normal(0, alone) if yes_no else dist.StudentT(TAILS, 0, alone)
        main, pair = numpyro.sample("main", of_main.to_event(1)), pairs
        # One field has no pairs.
        if len(pairs):
            spread = (YES_NO_PAIR if yes_no else PAIR) * pairs
            pair = numpyro.sample("pair", dist.StudentT(TAILS, 0, spread).to_event(1))
        law = shares_of_cells(fields, main, pair)
        numpyro.deterministic("shares", jnp.concatenate(margins(law)))
        return (law,)

    def moments(line: Regression, sd: Any, law: Array) -> Array:
        value, spread = line_in_cells(fields, law, line)
        if sd is None:
            return second_moments(fields, law, logistic_response(value, spread), 1.0)
        return second_moments(fields, law, value, jnp.sum(law * (value**2 + spread)) + sd**2)

    def parameters(draws: Draws) -> dict[str, Values]:
        named: dict[str, Values] = {}
        each = np.split(draws["shares"], np.cumsum([field.size for field in fields])[:-1], axis=-1)
        for asked, shares in zip(question.features, each, strict=True):
            if asked.choices or asked.cuts:
                levels = enumerate(asked.choices or _bins_of(asked))
                named |= {f"share[{asked.id}={label}]": shares[..., place] for place, label in levels}
            else:
                named[f"mean[{asked.id}]"] = shares[..., 1]
        return named

    initial: dict[str, object] = {"main": np.zeros(len(alone))}
    initial |= {"pair": np.zeros(len(pairs))} if len(pairs) else {}
    # Reports do not show an answer's position within its bin.
    cut = listed([field.id for field in question.features if field.cuts])
    note = (
        f"within its bins the line takes {cut} as spread smoothly, which reports cannot confirm: if "
        "people answer whole or round numbers, cut halfway between them"
    )
    return Features(draw, moments, initial, parameters, (note,) if cut else ())


def shares_of_cells(fields: Sequence[Levels], main: Any, pair: Any) -> Array:
    """Return the shares of the cells, with one axis for each field."""
    places = _places([field.size for field in fields])
    paired = [place[1 : 1 + field.paired] for place, field in zip(places, fields, strict=True)]
    where = [place[1:] for place in places]
    where += [np.add.outer(one, other).ravel() for one, other in combinations(paired, 2)]
    effects = jnp.concatenate([jnp.asarray(main), jnp.asarray(pair)])
    table = jnp.zeros(prod(field.size for field in fields)).at[np.concatenate(where)].set(effects)
    # An effect is the product of a constant along all fields but its own one or two.
    logs = _transformed(table[None], [_with_constant(field.effects).T for field in fields])
    logs = logs.reshape([field.size for field in fields])
    for axis, field in enumerate(fields):
        logs = logs + _along(jnp.asarray(field.log_width), axis, len(fields))
    return jnp.exp(logs - jax.nn.logsumexp(logs))


def _places(widths: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return for each field the places of its entries in a table of these widths, flat, 0 for the others."""
    strides = [prod(widths[axis + 1 :]) for axis in range(len(widths))]
    return [stride * np.arange(width) for stride, width in zip(strides, widths, strict=True)]


def _with_constant(columns: Values) -> Values:
    return np.column_stack([np.ones(len(columns)), columns])


def _transformed(tables: Array, matrices: Sequence[Values]) -> Array:
    """Multiply tables (b, entries) by a matrix (k, m) along each field, of k entries."""
    length = 1
    for matrix in reversed(matrices):
        cells = tables.reshape(len(tables), -1, len(matrix), length)
        tables = jnp.einsum("km,blkr->blmr", jnp.asarray(matrix), cells, precision=jax.lax.Precision.HIGHEST)
        length *= matrix.shape[1]
    return tables.reshape(len(tables), -1)


def _along(values: Any, axis: int, d: int) -> Array:
    """Return values with d axes, that vary along one and broadcast along the others."""
    return jnp.expand_dims(values, [other for other in range(d) if other != axis])


def margins(law: Array) -> list[Array]:
    """Return the shares of each field's levels."""
    return [
        jnp.sum(law, axis=[other for other in range(law.ndim) if other != axis]) for axis in range(law.ndim)
    ]


def line_in_cells(fields: Sequence[Levels], law: Array, line: Regression) -> tuple[Array, Array]:
    """Return the line in each cell, averaged over the cell's people, and its variance among them.

    Numbers within a cell are assumed independent.
    """
    d, value, spread, start = len(fields), jnp.asarray(line.intercept), jnp.zeros(()), 0
    for axis, (field, shares) in enumerate(zip(fields, margins(law), strict=True)):
        columns = jnp.asarray(field.columns)
        if len(field.ends):
            mean, variance = field.within(shares)
            columns = mean[:, None]
            spread = spread + _along(line.coefficients[start] ** 2 * variance, axis, d)
        end = start + columns.shape[1]
        value, start = value + _along(columns @ line.coefficients[start:end], axis, d), end
    return value, spread


def logistic_response(value: Array, spread: Array) -> Array:
    """Return the mean of a response of −1 and 1: tanh(line / 2) averaged over two points, mean ± sd."""
    # The square root has no derivative at 0.
    away = jnp.sqrt(spread + 1e-12)
    return (jnp.tanh((value + away) / 2) + jnp.tanh((value - away) / 2)) / 2


def second_moments(fields: Sequence[Levels], law: Array, response: Array, square: Any) -> Array:
    """Return M = E[uuᵀ] of u = (1, entries…, response), with 1 for products that no device sends.

    response: its mean in each cell. square: the mean of its square over all people.
    """
    both = jnp.stack([law, law * response]).reshape(2, -1)
    among, with_response = _transformed(both, [_with_constant(field.codes) for field in fields])
    widths = [field.codes.shape[1] for field in fields]
    each = _places([1 + width for width in widths])
    places = np.concatenate([[0], *(place[1:] for place in each)])
    owners = np.repeat(np.arange(len(fields) + 1), [1, *widths])
    sent = owners[:, None] != owners
    pairs = np.where(sent, places[:, None] + places, 0)
    cross = with_response[places]
    corner = jnp.reshape(jnp.asarray(square), (1, 1))
    return jnp.block([[among[pairs], cross[:, None]], [cross[None], corner]])


def _bins_of(field: Field) -> list[str]:
    """Return a number's bins in words, from bound to bound."""
    assert field.bounds is not None
    ends = [f"{float(end):.15g}" for end in (field.bounds[0], *field.cuts, field.bounds[1])]
    return [f"{low} to {high}" for low, high in pairwise(ends)]


def random_people(
    question: Question, mechanism: SampledProducts, sites: Mapping[str, Any], n: int, random: Generator
) -> tuple[dict[str, NDArray[Any]], Values]:
    """Draw {feature: answers} of n people, and the line's scaled columns, from one draw of a law of cells."""
    fields = levels_of(mechanism)
    main, pair = np.asarray(sites["main"]), np.asarray(sites.get("pair", ()))
    with jax.enable_x64(True):
        law = np.asarray(shares_of_cells(fields, main, pair))
    cells = np.unravel_index(random.choice(law.size, size=n, p=law.ravel() / law.sum()), law.shape)
    answers, columns = {}, []
    for axis, (asked, field, levels) in enumerate(zip(question.features, fields, cells, strict=True)):
        others = tuple(other for other in range(law.ndim) if other != axis)
        if len(field.ends):
            steep = field.steepness(law.sum(axis=others))[levels]
            steep = np.where(np.abs(steep) < 1e-6, 1e-6, steep)
            drawn = np.log1p(random.random(n) * np.expm1(2 * steep)) / steep - 1
            scaled = field.middle[levels] + field.half[levels] * drawn
            zero, unit = field_units(asked)
            answers[asked.id], column = zero + unit * scaled, scaled[:, None]
        else:
            answers[asked.id] = np.asarray(asked.choices)[levels] if asked.choices else levels > 0
            column = field.columns[levels]
        columns.append(column)
    return answers, np.hstack(columns)
