"""A linear predictor: standardised, rotated columns for the sampler, coefficients in own units for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from inference.analyses.matrices import Matrix, weights_of
from inference.analyses.middles import Change, change_of, rows_of_priors
from inference.analyses.naming import INTERCEPT, Parameters, Place, axis_of, named, united
from inference.analyses.stated_priors import Given, is_flat, log_density
from inference.analyses.table import Codes, Values
from inference.models.base import Draws
from inference.priors.laws import Stated, state
from ldp_client.documents.errors import InputError

# Of the largest pivot: columns that add less than this to the others say the same as they do.
DEPENDENT = 1e-9
MOST_COLUMNS = 500


@dataclass(frozen=True)
class Scales:
    """Default priors: sds of the intercept in the middle and of a coefficient times its column's unit.

    loc: of the intercept.
    """

    intercept: float
    coefficient: float
    loc: float = 0.0


@dataclass(frozen=True)
class Linear:
    """β for `outputs` linear predictors at once (1, or one for each choice but the first).

    site: its name in the program. matrix: as it was built. rotated: (cells, combinations, columns) that are
    uncorrelated. unrotation: (columns, columns): standardised coefficients = unrotation @ rotated ones.
    middles, spreads: of the columns. outputs: their labels, ("",) for one. lead: what stands before names.
    priors: of each coefficient and output; intercept_priors: of each output's intercept, in the middle unless
    it was stated. empty: columns that are zero everywhere. change: to coefficients where numbers are counted
    from their middles. prior_rows: (outputs, columns, columns), what times β has priors, None for β itself.
    """

    site: str
    matrix: Matrix
    rotated: Values
    unrotation: Values
    middles: Values
    spreads: Values
    columns: NDArray[np.int64]
    intercept: bool
    outputs: tuple[str, ...]
    lead: str
    priors: tuple[tuple[Stated, ...], ...]
    intercept_priors: tuple[tuple[Stated, bool], ...]
    empty: tuple[str, ...]
    change: Change | None = None
    prior_rows: Values | None = None

    def data(self) -> dict[str, Values]:
        """What the program takes."""
        return {f"{self.site}_columns": self.rotated}

    def initial(self, intercepts: Values) -> dict[str, object]:
        """Where to start: no effects."""
        found: dict[str, object] = {}
        if len(self.columns):
            found[f"{self.site}_rotated"] = np.zeros((len(self.columns), len(self.outputs)))
        if self.intercept:
            found[f"{self.site}_middle"] = intercepts
        return found

    def draw(self, data: dict[str, Array]) -> Array:
        """Inside a NumPyro program: η (cells, combinations, outputs)."""
        rotated, middle = self.drawn()
        eta = jnp.zeros((*self.rotated.shape[:2], len(self.outputs)))
        if len(self.columns):
            eta += data[f"{self.site}_columns"] @ rotated
        return eta if middle is None else eta + middle

    def drawn(self) -> tuple[Array, Array | None]:
        """Inside a NumPyro program: coefficients of the rotated columns, and intercepts in the middle.

        (columns, outputs) and, where there are any, (outputs,).
        """
        outputs = len(self.outputs)
        rotated = coefficients = jnp.zeros((0, outputs))
        if len(self.columns):
            real = dist.ImproperUniform(dist.constraints.real, (), (len(self.columns), outputs))
            rotated = numpyro.sample(f"{self.site}_rotated", real)
            coefficients = self.unrotation @ rotated / self.spreads[:, None]
            flat = [prior for row in self.priors for prior in row]
            own = coefficients
            if self.prior_rows is not None:
                # From the rotated ones: of a year's square the coefficients themselves would cancel.
                turns = self.prior_rows / self.spreads @ self.unrotation
                own = jnp.einsum("ojk,ko->jo", turns, rotated)
            numpyro.factor(f"{self.site}_prior", log_density(flat, own.ravel()))
        if not self.intercept:
            return rotated, None
        real = dist.ImproperUniform(dist.constraints.real, (), (outputs,))
        middle = numpyro.sample(f"{self.site}_middle", real)
        at_zero = middle - self.middles @ coefficients
        for place, (prior, was_stated) in enumerate(self.intercept_priors):
            at = at_zero if was_stated else middle
            numpyro.factor(f"{self.site}_middle_prior_{place}", log_density([prior], at[place : place + 1]))
        return rotated, middle

    def coefficients(self, draws: Draws) -> Values:
        """β in own units, (…, columns of the matrix, outputs), of draws (…)."""
        lead = self._lead_axes(draws)
        slopes = np.zeros((*lead, 0, len(self.outputs)))
        if len(self.columns):
            rotated = draws[f"{self.site}_rotated"]
            slopes = np.einsum("jk,...ko->...jo", self.unrotation, rotated) / self.spreads[:, None]
        found = np.zeros((*lead, len(self.matrix.terms), len(self.outputs)))
        found[..., self.columns, :] = slopes
        if self.intercept:
            middle = draws[f"{self.site}_middle"]
            found[..., self.intercept_place, :] = middle - np.einsum("j,...jo->...o", self.middles, slopes)
        return found

    @property
    def from_priors(self) -> Values | None:
        """(outputs, columns, columns) from what has the priors to β; None where that is β itself."""
        return None if self.prior_rows is None else np.asarray(np.linalg.inv(self.prior_rows), np.float64)

    def at_middles(self, draws: Draws) -> Values:
        """As `coefficients`, of the columns alone, where numbers are counted from their middles."""
        slopes = self.coefficients(draws)[..., self.columns, :]
        return slopes if self.change is None else np.asarray(self.change.rows @ slopes)

    @property
    def spreads_at_middles(self) -> Values:
        """The sds of the columns that those are of."""
        return self.spreads if self.change is None else self.change.spreads

    def moved_priors(self) -> list[str]:
        """The names of coefficients whose default priors are of something else than they are."""
        if self.prior_rows is None:
            return []
        moved = (self.prior_rows != np.eye(len(self.columns))).any(axis=2).T
        names = self.names()
        return [names[self.columns[place]][output] for place, output in np.argwhere(moved)]

    def open_priors(self) -> set[str]:
        """The names of coefficients of which flat priors, of others too, leave nothing said."""
        flat = np.asarray([[is_flat(prior) for prior in row] for row in self.priors], bool)
        if self.from_priors is not None:
            flat = np.einsum("ojk,ko->jo", self.from_priors != 0, flat)
        names = self.names()
        return {names[self.columns[place]][output] for place, output in np.argwhere(flat)}

    def sites(self, coefficients: Values) -> dict[str, Values]:
        """The sites at which coefficients, (columns of the matrix, outputs), are these."""
        slopes = coefficients[self.columns]
        found: dict[str, Values] = {}
        if len(self.columns):
            rotated = np.linalg.solve(self.unrotation, slopes * self.spreads[:, None])
            found[f"{self.site}_rotated"] = np.asarray(rotated, np.float64)
        if self.intercept:
            found[f"{self.site}_middle"] = coefficients[self.intercept_place] + self.middles @ slopes
        return found

    def _lead_axes(self, draws: Draws) -> tuple[int, ...]:
        """The axes of draws before those of a site; without sites of its own, by cutpoints or groups."""
        own = {f"{self.site}_rotated": 2, f"{self.site}_middle": 1, "threshold": 1}
        own |= {name: 3 for name in draws if name.endswith("_z")}
        name = next(name for name in own if name in draws)
        return draws[name].shape[: -own[name]]

    @property
    def intercept_place(self) -> int:
        """Of the matrix's columns, where there is one."""
        return self.matrix.terms.index(INTERCEPT)

    def names(self) -> list[list[str]]:
        """Of each column and output its parameter's name."""
        return [
            [named(f"{self.lead}{term}", level, output) for output in self.outputs]
            for term, level in zip(self.matrix.terms, self.matrix.levels, strict=True)
        ]

    def parameters(self, draws: Draws) -> Parameters:
        """{name: draws} of every coefficient, as bambi names it; cutpoints stand in place of an intercept."""
        found, names = self.coefficients(draws), self.names()
        rows = [row for row, term in enumerate(self.matrix.terms) if self.intercept or term != INTERCEPT]
        pairs = [(row, column) for row in rows for column in range(len(self.outputs))]
        return united(*({names[row][column]: found[..., row, column]} for row, column in pairs))

    def places(self, outputs: str, of: str) -> list[Place]:
        """Of each parameter its place; outputs: the dimension of the choices. of: whose law it is."""
        found = []
        for term, level in zip(self.matrix.terms, self.matrix.levels, strict=True):
            if term == INTERCEPT and not self.intercept:
                continue
            whole = self.lead + term
            what = f"the intercept of {of}" if term == INTERCEPT else f"the effect of {term} on {of}"
            for output in self.outputs:
                axis = axis_of(whole, {f"{whole}_dim": level, outputs: output})
                found.append(Place(named(whole, level, output), axis, what, term, (level, output)))
        return found

    def spread_by_name(self) -> dict[str, float]:
        """{coefficient: its column's sd}, of a level 1."""
        names = self.names()
        return {
            names[column][output]: 1.0 if self.matrix.levels[column] else float(self.spreads[place])
            for place, column in enumerate(self.columns)
            for output in range(len(self.outputs))
        }

    def intercept_names(self) -> list[list[str]]:
        """Of each output the intercept's name and those of the coefficients beside it."""
        if not self.intercept:
            return []
        names = self.names()
        wanted = [self.intercept_place, *self.columns]
        return [[names[row][output] for row in wanted] for output in range(len(self.outputs))]

    def prior_by_name(self) -> dict[str, tuple[Stated, bool]]:
        """{name: its prior, and whether that is of the parameter itself, not of the intercept's middle}."""
        names = self.names()
        found = {}
        for place, column in enumerate(self.columns):
            for output, prior in enumerate(self.priors[place]):
                found[names[column][output]] = (prior, True)
        if self.intercept:
            for output, (prior, was_stated) in enumerate(self.intercept_priors):
                found[names[self.intercept_place][output]] = (prior, was_stated)
        return found


def linear_of(
    site: str,
    matrix: Matrix,
    sizes: Codes,
    scales: Scales,
    given: Given,
    outputs: Sequence[str] = ("",),
    lead: str = "",
    cutpoints: bool = False,
) -> Linear:
    """Standardise and rotate a design matrix.

    sizes: reports in each cell. cutpoints: whether the outcome has its own instead of an intercept. Raises
    InputError for columns that say the same, or nothing.
    """
    intercept = INTERCEPT in matrix.terms and not cutpoints
    columns = _coefficients(matrix)
    values = matrix.values[:, :, columns]
    weights = weights_of(matrix, sizes)
    middles = np.einsum("ck,ckj->j", weights, values) * (intercept or cutpoints)
    centred = values - middles
    spreads = np.sqrt(np.einsum("ck,ckj->j", weights, centred**2))
    names = [matrix.names[column] for column in columns]
    empty = _unseen(matrix, columns, values)
    _refuse_constant(spreads, names, empty, np.abs(values).max(axis=(0, 1), initial=0.0))
    spreads[empty] = 1.0
    unrotation = _rotation(centred / spreads, weights, names, empty)
    change = change_of(matrix, columns, weights, intercept or cutpoints)
    sds = scales.coefficient / _units(matrix, columns, weights, spreads, change)
    priors, stated = _priors(matrix, columns, sds, given, outputs, lead)
    for place in empty:
        if any(is_flat(prior) for prior in priors[place]):
            raise InputError(
                f"no report has {names[place]}: a flat prior leaves it no posterior; state one",
                code="prior.flat_without_reports",
            )
    middle = state("normal", loc=scales.loc, scale=scales.intercept)
    return Linear(
        site,
        matrix,
        centred / spreads @ unrotation,
        unrotation,
        middles,
        spreads,
        columns,
        intercept,
        tuple(outputs),
        lead,
        priors,
        tuple(given.of(_keys(lead, INTERCEPT, "", output), middle) for output in outputs if intercept),
        tuple(names[place] for place in empty),
        change,
        rows_of_priors(change, stated),
    )


def _priors(
    matrix: Matrix, columns: Codes, sds: Values, given: Given, outputs: Sequence[str], lead: str
) -> tuple[tuple[tuple[Stated, ...], ...], NDArray[np.bool_]]:
    """The prior of each coefficient and output, and whether it was stated. sds: of default ones."""
    priors, stated = [], []
    for column, sd in zip(columns, sds, strict=True):
        default = state("normal", loc=0.0, scale=sd)
        term, level = matrix.terms[column], matrix.levels[column]
        found = [given.of(_keys(lead, term, level, output), default) for output in outputs]
        priors.append(tuple(prior for prior, _ in found))
        stated.append([own for _, own in found])
    return tuple(priors), np.asarray(stated, bool).reshape(len(columns), len(outputs))


def _units(matrix: Matrix, columns: Codes, weights: Values, spreads: Values, change: Change | None) -> Values:
    """By what a default prior's sd is divided: a column's sd, but of two values their distance.

    So a level's prior is the same however few have it. Divided by its column's sd that of a rare one would be
    so wide that nearly all of it says none or all: where the noise leaves room, so would the posterior. What
    a level is multiplied with has its sd among those who have the level.
    """
    own, found = matrix.values[:, :, columns], spreads.copy()
    centred = own
    if change is not None and matrix.centred is not None:
        centred, found = matrix.centred[:, :, columns], change.spreads.copy()
    for place, column in enumerate(columns):
        values = centred[:, :, place]
        low, high = values.min(), values.max()
        if not high > low:
            continue
        if ((values == low) | (values == high)).all():
            found[place] = high - low
        elif matrix.levels[column]:
            have = (own[:, :, place] != 0) | (values != 0)
            middle = np.average(values[have], weights=weights[have])
            found[place] = np.sqrt(np.average((values[have] - middle) ** 2, weights=weights[have]))
    return found


def _coefficients(matrix: Matrix) -> Codes:
    """Places of the columns that have coefficients. Raises InputError for too many."""
    columns = np.asarray([place for place, term in enumerate(matrix.terms) if term != INTERCEPT], np.int64)
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"the formula has {len(columns)} coefficients, and at most {MOST_COLUMNS} are drawn: is a column "
            "of many values a factor by mistake? What differs between many groups is written (1 | group)",
            code="formula.too_many_coefficients",
        )
    return columns


def _unseen(matrix: Matrix, columns: Codes, values: Values) -> list[int]:
    """Places of levels that nobody has; a number that is always 0 is a slip."""
    is_level = np.asarray([bool(matrix.levels[column]) for column in columns], bool)
    return [int(place) for place in np.flatnonzero(~values.any(axis=(0, 1)) & is_level)]


def _keys(lead: str, term: str, level: str, output: str) -> list[str]:
    """Names under which a prior may be stated: the parameter's own, its level's, its term's."""
    return list(
        dict.fromkeys([named(lead + term, level, output), named(lead + term, level, ""), lead + term])
    )


def _refuse_constant(spreads: Values, names: Sequence[str], empty: Sequence[int], sizes: Values) -> None:
    for place, name in enumerate(names):
        if place not in empty and spreads[place] <= 1e-12 * sizes[place]:
            raise InputError(
                f"{name} is the same in every row, so that nothing can be learnt of it: leave it out",
                code="formula.constant_column",
            )


def _rotation(standard: Values, weights: Values, names: Sequence[str], empty: Sequence[int]) -> Values:
    """R⁻¹ of the QR decomposition of the weighted columns; empty ones stay as they are.

    Raises InputError where columns are collinear.
    """
    unrotation = np.eye(len(names))
    full = [place for place in range(len(names)) if place not in empty]
    if not full:
        return unrotation
    tall = (standard * np.sqrt(weights)[:, :, None]).reshape(-1, len(names))[:, full]
    # From the triangle of the first decomposition, which is small, to the pivots.
    triangle = qr(tall, mode="r", check_finite=False)[0][: len(full)]
    pivots, order = qr(triangle, mode="r", pivoting=True)
    strengths = np.abs(np.diag(pivots))
    if len(triangle) < len(full) or strengths[-1] < DEPENDENT * strengths[0]:
        raise InputError(
            _collinear(triangle, [names[place] for place in full], order[-1]),
            code="formula.collinear_columns",
        )
    unrotation[np.ix_(full, full)] = solve_triangular(triangle, np.eye(len(full)))
    return unrotation


def _collinear(triangle: Values, names: Sequence[str], last: int) -> str:
    _, _, right = np.linalg.svd(triangle)
    both = [name for name, weight in zip(names, right[-1], strict=True) if abs(weight) > 1e-6]
    both = both if len(both) > 1 else [names[last]]
    return (
        f"the columns {', '.join(both)} say the same, together with the intercept where there is one, so "
        "that nothing tells their coefficients apart: leave one of them out"
    )
