"""A linear predictor: standardised columns for the sampler, coefficients in own units for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.analyses.formula import INTERCEPT, Labels, Parameter, named
from inference.analyses.matrices import Matrix, weights_of
from inference.analyses.stated_priors import Given, RealPriors, is_flat
from inference.analyses.table import Codes, Values
from inference.models.base import Draws
from inference.priors.laws import Stated, state
from ldp_client.documents.errors import InputError

# Of the largest singular value: columns with a smaller one are collinear.
DEPENDENT = 1e-9
MOST_COLUMNS = 500
# Of a product's or power's variance by other columns: 100 where a number's mean is some ten sds from 0.
MOST_INFLATION = 100.0


@dataclass(frozen=True)
class Linear:
    """β for the linear predictors that are drawn together: one, or one for each choice but the first.

    site: the name in the program. matrix: as built. standard: centred columns divided by their sds (cells,
    combinations, columns). middles, spreads: of the columns. priors: of each coefficient and output.
    intercept_priors: of each output's intercept, at the middle unless stated. empty: columns that are zero
    everywhere. overruled: products and powers so nearly collinear with other columns that default priors
    decide their coefficients. loc: where chains start an intercept.
    """

    site: str
    matrix: Matrix
    standard: Values
    middles: Values
    spreads: Values
    columns: NDArray[np.int64]
    intercept: bool
    labels: Labels
    priors: tuple[tuple[Stated, ...], ...]
    intercept_priors: tuple[tuple[Stated, bool], ...]
    empty: tuple[str, ...]
    overruled: tuple[str, ...]
    loc: float

    def data(self) -> dict[str, Values]:
        """Return the program's data."""
        return {f"{self.site}_columns": self.standard}

    def initial(self) -> dict[str, object]:
        """Return the start: no effects."""
        found: dict[str, object] = {}
        if len(self.columns):
            found[f"{self.site}_slopes"] = np.zeros((len(self.columns), len(self.labels.outputs)))
        if self.intercept:
            found[f"{self.site}_middle"] = np.full(len(self.labels.outputs), self.loc)
        return found

    def draw(self, data: dict[str, Array]) -> Array:
        """Sample, inside a NumPyro program, η (cells, combinations, outputs)."""
        slopes, middle = self.drawn()
        eta = jnp.zeros((*self.standard.shape[:2], len(self.labels.outputs)))
        if len(self.columns):
            eta += data[f"{self.site}_columns"] @ slopes
        return eta if middle is None else eta + middle

    def drawn(self) -> tuple[Array, Array | None]:
        """Sample, inside a NumPyro program, slopes of standardised columns, and intercepts at the middle.

        Shapes: (columns, outputs) and, if there are intercepts, (outputs,).
        """
        shape = (len(self.columns), len(self.labels.outputs))
        slopes = jnp.zeros(shape)
        if len(self.columns):
            priors = [prior for row in self.priors for prior in row]
            law = RealPriors(priors, shape, self.spreads[:, None])
            slopes = numpyro.sample(f"{self.site}_slopes", law)
        if not self.intercept:
            return slopes, None
        # A stated prior is of the intercept itself, where all columns are 0.
        stated = np.asarray([own for _, own in self.intercept_priors])
        shift = jnp.where(stated, (self.middles / self.spreads) @ slopes, 0.0)
        law = RealPriors([prior for prior, _ in self.intercept_priors], shape[1:], shift=shift)
        return slopes, numpyro.sample(f"{self.site}_middle", law)

    def coefficients(self, draws: Draws) -> Values:
        """Return β in own units, (…, columns of the matrix, outputs), of draws (…).

        Without columns and intercept, as beside cutpoints or groups alone, they are 0 without further axes.
        """
        middles, outputs = draws.get(f"{self.site}_middle"), len(self.labels.outputs)
        lead = () if middles is None else middles.shape[:-1]
        slopes = draws.get(f"{self.site}_slopes", np.zeros((*lead, 0, outputs))) / self.spreads[:, None]
        found = np.zeros((*slopes.shape[:-2], len(self.matrix.terms), outputs))
        found[..., self.columns, :] = slopes
        if middles is not None:
            away = np.einsum("j,...jo->...o", self.middles, slopes)
            found[..., self.matrix.terms.index(INTERCEPT), :] = middles - away
        return found

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return every coefficient, named as in bambi; cutpoints replace an intercept."""
        found, slopes = [], iter(zip(self.priors, self.spreads, strict=True))
        for term, level in zip(self.matrix.terms, self.matrix.levels, strict=True):
            whole = self.labels.lead + term
            priors: Any = self.intercept_priors
            if term != INTERCEPT:
                own, spread = next(slopes)
                priors = [(prior, True, 1.0 if level else float(spread)) for prior in own]
            for output, prior in zip(self.labels.outputs, priors, strict=False):
                found.append(Parameter(whole, {f"{whole}_dim": level, self.labels.dimension: output}, *prior))
        return found

    def values(self, draws: Draws) -> Values:
        """Return draws of the entries, (…, entries)."""
        found = self.coefficients(draws)
        rows = [row for row, term in enumerate(self.matrix.terms) if self.intercept or term != INTERCEPT]
        return found[..., rows, :].reshape(*found.shape[:-2], -1)


def linear_of(
    site: str,
    matrix: Matrix,
    sizes: Codes,
    scale: float,
    loc: float,
    given: Given,
    labels: Labels,
    cutpoints: bool = False,
) -> Linear:
    """Standardise a design matrix.

    sizes: reports in each cell. scale, loc: of default priors, as of an `Outcome`. cutpoints: True if the
    outcome has cutpoints instead of an intercept. Raises InputError for redundant or constant columns.
    """
    # 1. Centre and scale the columns with coefficients.
    intercept = INTERCEPT in matrix.terms and not cutpoints
    columns = np.asarray([place for place, term in enumerate(matrix.terms) if term != INTERCEPT], np.int64)
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"the formula has {len(columns)} coefficients, but at most {MOST_COLUMNS} are drawn: is a column "
            "of many values a factor by mistake? For many groups, write (1 | group)",
            code="formula.too_many_coefficients",
        )
    values, weights = matrix.values[:, :, columns], weights_of(matrix, sizes)
    names = [matrix.names[column] for column in columns]
    levels = [matrix.levels[column] for column in columns]
    middles = np.einsum("ck,ckj->j", weights, values) * (intercept or cutpoints)
    centred = values - middles
    spreads = np.sqrt(np.einsum("ck,ckj->j", weights, centred**2))
    # 2. Levels may be without reports. Other constant columns, and collinear columns, are mistakes.
    largest = np.abs(values).max(axis=(0, 1), initial=0.0)
    empty = [place for place, level in enumerate(levels) if level and not largest[place]]
    full = [place for place in range(len(names)) if place not in empty]
    for place in full:
        if spreads[place] <= 1e-12 * largest[place]:
            raise InputError(
                f"{names[place]} is the same in every row, so it has no estimable effect: remove it",
                code="formula.constant_column",
            )
    spreads[empty] = 1.0
    inflation = _inflation((centred / spreads)[:, :, full], weights, [names[place] for place in full])
    overruled = [
        place
        for place, times in zip(full, inflation, strict=True)
        if times > MOST_INFLATION and set(":(*") & set(matrix.terms[columns[place]])
    ]
    # 3. State the priors.
    units = _units(matrix, columns, weights, spreads)
    priors, defaults = [], []
    for column, sd in zip(columns, scale / units, strict=True):
        default = state("normal", loc=0.0, scale=sd)
        keys = [
            _keys(labels.lead, matrix.terms[column], matrix.levels[column], output)
            for output in labels.outputs
        ]
        both = [given.of(own, default) for own in keys]
        priors.append(tuple(prior for prior, _ in both))
        defaults.append(not all(was_stated for _, was_stated in both))
    for place in empty:
        if any(is_flat(prior) for prior in priors[place]):
            raise InputError(
                f"no report has {names[place]}: under a flat prior it has no posterior. State a prior.",
                code="prior.flat_without_reports",
            )
    middle = state("normal", loc=loc, scale=scale)
    return Linear(
        site,
        matrix,
        centred / spreads,
        middles,
        spreads,
        columns,
        intercept,
        labels,
        tuple(priors),
        tuple(
            given.of(_keys(labels.lead, INTERCEPT, "", output), middle)
            for output in labels.outputs
            if intercept
        ),
        tuple(names[place] for place in empty),
        tuple(names[place] for place in overruled if defaults[place]),
        loc,
    )


def _units(matrix: Matrix, columns: Codes, weights: Values, spreads: Values) -> Values:
    """Return the divisors of default priors' sds: a column's sd or, for two values, their distance.

    So a level's prior does not depend on how many people have the level. Divided by its column's sd, a rare
    level's prior would be so wide that nearly all its mass is on shares 0 and 1; if the noise allowed it, the
    posterior would be too. A column multiplied with a level has its sd among the people with that level.
    """
    found = spreads.copy()
    for place, column in enumerate(columns):
        values = matrix.values[:, :, column]
        low, high = values.min(), values.max()
        if not high > low:
            continue
        if ((values == low) | (values == high)).all():
            found[place] = high - low
        elif matrix.levels[column]:
            have = values != 0
            middle = np.average(values[have], weights=weights[have])
            found[place] = np.sqrt(np.average((values[have] - middle) ** 2, weights=weights[have]))
    return found


def _inflation(standard: Values, weights: Values, names: Sequence[str]) -> Values:
    """Return how much the other columns inflate the variance of each column's coefficient.

    If a number is far from 0, its square is nearly a line, and its product with a level nearly the level.
    Default priors of standardised columns then hold for a difference that no data show. Raises InputError for
    collinear columns.
    """
    if not names:
        return np.zeros(0)
    tall = (standard * np.sqrt(weights)[:, :, None]).reshape(weights.size, len(names))
    triangle = np.asarray(np.linalg.qr(tall, mode="r"))
    _, strengths, ways = np.linalg.svd(triangle)
    if len(strengths) < len(names) or strengths[-1] < DEPENDENT * strengths[0]:
        both = [name for name, weight in zip(names, ways[-1], strict=True) if abs(weight) > 1e-6]
        raise InputError(
            f"the columns {', '.join(both)} are collinear, possibly with the intercept, so their "
            "coefficients are not identified: remove one, or choose a reference level that has reports",
            code="formula.collinear_columns",
        )
    return np.asarray(((ways.T / strengths) ** 2).sum(axis=1) * (triangle**2).sum(axis=0))


def _keys(lead: str, term: str, level: str, output: str) -> list[str]:
    """Return the names under which a prior may be stated: the parameter's, its level's, its term's."""
    return list(
        dict.fromkeys([named(lead + term, level, output), named(lead + term, level, ""), lead + term])
    )
