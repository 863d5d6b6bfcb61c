"""Count numbers from their middles, where default priors are stated.

In `region * age` the coefficient of `region` is the difference where age is 0. A prior of it there would
imply, for people of age 70, a difference of 70 times the interaction, plus or minus the prior's sd. So it
would pull the interaction to 0. If priors are stated with every number at its mean, priors and posterior do
not depend on a number's zero. Let X' be the columns with centred numbers. If they span the same space as X,
then X' = X B for one B, and the coefficients of X' are B⁻¹ times the coefficients of X.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from inference.analyses.columns import NUMBER
from inference.analyses.matrices import (
    Matrix,
    Middle,
    again,
    factors_of,
    matrix_of,
    over_answers,
    weights_of,
    with_stand_ins,
)
from inference.analyses.parameter_names import INTERCEPT
from inference.analyses.table import Codes, Private, Values
from ldp_client.documents.errors import InputError

# Relative to a column's sd: the part that the other columns may leave unexplained.
UNEXPLAINED = 1e-8
# Relative to a row's largest entry: rounding error.
ROUNDING = 1e-9
# The highest degree of a recognised polynomial, and the number of places in a number's range.
MOST_DEGREES, PLACES = 5, 40
# The most coefficients named in a note.
MOST_NAMED = 5


@dataclass(frozen=True)
class Change:
    """The map from coefficients β of X to γ of X': γ = rows @ β. spreads: of X'."""

    rows: Values
    spreads: Values

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Return True for each coefficient for which γ differs from β."""
        return np.asarray((self.rows != np.eye(len(self.rows))).any(axis=1))


@dataclass(frozen=True)
class _Number:
    """A numeric factor of terms. values: its value in each row. column: its column, if it is a polynomial.

    degree: of the polynomial, 0 for none; leading: its highest coefficient.
    """

    text: str
    values: Values
    column: str = ""
    degree: int = 0
    leading: float = 0.0


def counted_from_middles(
    matrix: Matrix, side: str, frame: pd.DataFrame, predictors: Sequence[Private], sizes: Codes
) -> Matrix:
    """Return the matrix, with numbers in interactions or polynomials counted from their middles.

    A polynomial of a number that is itself a factor, such as I(age**2) with age, becomes a polynomial of its
    distance from the middle. A number is unchanged if the terms would change meaning, or would not change.
    """
    terms = factors_of(side, _names(frame, predictors))
    factors = {text: named for term in terms for text, named in term.items()}
    products = {text for term in terms if len(term) > 1 for text in term}
    twice = Counter(name for named in factors.values() for name in set(named))
    if not products and max(twice.values(), default=0) < 2:
        return matrix
    wide = over_answers(frame, predictors, matrix.combinations)
    repeated = np.repeat(sizes, len(matrix.combinations))
    weights = weights_of(matrix, sizes)
    own = {part.text for column in matrix.made for part in column if part.kind == NUMBER}
    numbers = list(_numbers({text: factors[text] for text in factors if _plain(text) in own}, wide, repeated))
    linear = {one.column for one in numbers if one.degree == 1}
    counted: dict[str, Values] = {}
    # Lower powers come first, because higher powers use them.
    for one in sorted(numbers, key=lambda one: one.degree):
        at = partial(_counted, one, one.text in products, one.column in linear, wide, weights.ravel())
        for values, middle in at():
            renamed, changed = _renamed(side, wide, {**counted, one.text: values})
            found = _with(matrix, matrix_of(renamed, changed, sizes=repeated), weights)
            if found is not None:
                counted[one.text] = values
                matrix = replace(found, middles={**matrix.middles, _plain(one.text): middle})
                break
    left = (one for one in numbers if one.text in products - set(counted))
    return replace(
        matrix, far=tuple(_plain(one.text) for one in left if _is_far(one.values, weights.ravel()))
    )


def change_of(matrix: Matrix, columns: Codes, weights: Values, constant: bool) -> Change | None:
    """Return the change of the columns' coefficients, None if no number is counted from its middle.

    constant: True if there is an intercept to absorb constants.
    """
    if matrix.centred is None or not len(columns):
        return None
    own, centred = matrix.values[:, :, columns], matrix.centred[:, :, columns]
    found = _explained(own, centred, weights, constant)
    if found is None or np.linalg.matrix_rank(found) < len(found):
        return None
    rows = np.asarray(np.linalg.inv(found), np.float64)
    before, spreads = (_spreads(part, weights, constant) for part in (own, centred))
    # For columns without reports.
    before, spreads = (np.where(part > 0, part, 1.0) for part in (before, spreads))
    sizes = np.abs(rows) * spreads[:, None] / before
    rows[sizes < ROUNDING * sizes.max(axis=1, keepdims=True)] = 0.0
    places = np.arange(len(rows))
    ones = np.abs(rows[places, places] - 1) < ROUNDING
    rows[places[ones], places[ones]] = 1.0
    return Change(rows, spreads)


def rows_of_priors(change: Change | None, given: NDArray[np.bool_]) -> Values | None:
    """Return rows (outputs, columns, columns): priors apply to rows @ β. None if they apply to β itself.

    given: (columns, outputs), True for stated priors, which apply to β itself.
    """
    if change is None or not (change.moves[:, None] & ~given).any():
        return None
    own = np.eye(len(change.rows))
    rows = np.stack([np.where(stated[:, None], own, change.rows) for stated in given.T])
    return rows if (np.linalg.matrix_rank(rows) == len(own)).all() else None


def in_words(names: Sequence[str], middles: Mapping[str, Middle]) -> str:
    """Return a note on the coefficients whose default priors are not stated where numbers are 0."""
    by_name = {middle.name: middle for middle in middles.values()}
    where = " and ".join(f"{name} is {middle.shown()}" for name, middle in by_name.items())
    whose = "its middle" if len(by_name) == 1 else "their middles"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"default priors of {', '.join(names[:MOST_NAMED])}{more} are stated where {where}, {whose}"


def far_in_words(far: Sequence[str]) -> list[str]:
    """Return a note on numbers in products that could not be counted from their middles, if any."""
    if not far:
        return []
    names = " and ".join(far)
    return [
        f"default priors are stated where {names} is 0, far from all people: the formula has a product "
        "without the lower terms. Write a * b for a:b, or count from a typical value"
    ]


def _is_far(values: Values, weights: Values) -> bool:
    """Return True if 0 is outside a number's range, and more than two sds from its mean."""
    middle = _middle("", values, weights)
    return bool(values.min() * values.max() > 0) and abs(middle.mean) > 2 * middle.spread


def _names(frame: pd.DataFrame, predictors: Sequence[Private]) -> list[str]:
    return [*map(str, frame.columns), *(one.name for one in predictors)]


def _numbers(factors: Mapping[str, Sequence[str]], wide: pd.DataFrame, sizes: Codes) -> Iterator[_Number]:
    """Yield these factors with their values, except factors that cannot be evaluated alone."""
    for text, named in factors.items():
        with suppress(InputError):
            own = matrix_of(f"0 + {text}", wide, sizes=sizes)
            yield _polynomial(_Number(text, own.values[:, 0, 0]), own, wide, named)


def _polynomial(one: _Number, own: Matrix, wide: pd.DataFrame, named: Sequence[str]) -> _Number:
    """Return the factor with its degree, if it is a polynomial of the only column that it names."""
    if len(set(named)) != 1 or not pd.api.types.is_numeric_dtype(wide[named[0]]):
        return one
    column = wide[named[0]].to_numpy(np.float64)
    middle, half = (column.max() + column.min()) / 2, np.ptp(column) / 2
    if not half > 0:
        return one
    places = np.cos(np.linspace(0, np.pi, PLACES))
    grid = wide.iloc[np.zeros(PLACES, int)].assign(**{named[0]: middle + half * places})
    try:
        with np.errstate(all="ignore"):
            values = again(own, grid)[:, 0, 0]
    except InputError:
        return one
    powers = np.polynomial.chebyshev.chebfit(places, values, MOST_DEGREES)
    fitted = np.polynomial.chebyshev.chebval(places, powers)
    if not np.ptp(values) > np.abs(fitted - values).max() / UNEXPLAINED:
        return one
    seen = np.flatnonzero(np.abs(powers) > UNEXPLAINED * np.abs(powers[1:]).max())
    degree = int(seen[-1])
    leading = float(powers[degree] * 2.0 ** max(degree - 1, 0) / half**degree)
    return replace(one, column=named[0], degree=degree, leading=leading)


def _counted(
    one: _Number, multiplied: bool, beside: bool, wide: pd.DataFrame, weights: Values
) -> Iterator[tuple[Values, Middle]]:
    """Yield the factor counted from its middle, with that middle, best first.

    multiplied: True if some term is a product with it. beside: True if its column also has a linear factor.
    """
    column = np.asarray(wide[one.column], np.float64) if one.column else one.values
    if one.degree > 1 and beside:
        middle = _middle(one.column, column, weights)
        yield one.leading * (column - middle.mean) ** one.degree, middle
    # A number with the values 0 and one other is two levels, of which 0 is the first.
    two_levels = len(np.unique(one.values)) == 2 and not one.values.all()
    if multiplied and not two_levels:
        counted = one.values - np.average(one.values, weights=weights)
        name, of = (one.column, column) if one.degree == 1 else (_plain(one.text), one.values)
        yield counted, _middle(name, of, weights)


def _plain(text: str) -> str:
    """Return a factor as it is shown, and as a matrix's parts spell it."""
    return text.replace("`", "")


def _middle(name: str, values: Values, weights: Values) -> Middle:
    mean = float(np.average(values, weights=weights))
    return Middle(name, mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights))))


def _renamed(side: str, wide: pd.DataFrame, counted: Mapping[str, Values]) -> tuple[str, pd.DataFrame]:
    """Return the right side with a separate column for each factor, and the frame with these columns."""
    text, stand_ins = with_stand_ins(side, list(map(str, wide.columns)), list(counted))
    return text, wide.assign(**{stand_ins[factor]: values for factor, values in counted.items()})


def _with(matrix: Matrix, counted: Matrix, weights: Values) -> Matrix | None:
    """Return the matrix with counted columns; None if these span another space, or are the same."""
    if counted.values.size != matrix.values.size or counted.levels != matrix.levels:
        return None
    found = replace(matrix, centred=counted.values.reshape(matrix.values.shape))
    columns = np.flatnonzero(np.asarray(matrix.terms) != INTERCEPT)
    before, after = (change_of(one, columns, weights, INTERCEPT in matrix.terms) for one in (matrix, found))
    if after is None:
        return None
    known = before.rows if before is not None else np.eye(len(columns))
    return None if np.allclose(after.rows, known, rtol=ROUNDING, atol=0) else found


def _explained(own: Values, wanted: Values, weights: Values, constant: bool) -> Values | None:
    """Return B of wanted = own @ B, keeping all-zero columns apart; None if no B is accurate enough."""
    turn = np.eye(own.shape[2])
    full = np.flatnonzero(own.any(axis=(0, 1)))
    changed = np.flatnonzero((own != wanted).any(axis=(0, 1)))
    if not len(changed):
        return turn
    tall = [_standard(part, weights, constant) for part in (own[:, :, full], wanted[:, :, changed])]
    if any(not (spreads > 0).all() for _, spreads in tall):
        return None
    triangle = qr(np.concatenate([part for part, _ in tall], axis=1), mode="r", check_finite=False)[0]
    count = len(full)
    upper, beside, left = triangle[:count, :count], triangle[:count, count:], triangle[count:, count:]
    pivots = np.abs(np.diag(upper))
    if len(upper) < count or not pivots.min() > 1e-12 * pivots.max():
        return None
    if len(left) and np.sqrt((left**2).sum(axis=0)).max() > UNEXPLAINED:
        return None
    found = solve_triangular(upper, beside)
    turn[np.ix_(full, changed)] = found * tall[1][1] / tall[0][1][:, None]
    return turn


def _standard(values: Values, weights: Values, constant: bool) -> tuple[Values, Values]:
    """Return the columns (rows, columns), with mean 0 if there is an intercept, and their sds."""
    middles = _means(values, weights) * constant
    spreads = _spreads(values, weights, constant)
    with np.errstate(all="ignore"):
        standard = (values - middles) / spreads * np.sqrt(weights)[:, :, None]
    return standard.reshape(-1, values.shape[2]), spreads


def _means(values: Values, weights: Values) -> Values:
    # In single precision, the chances of a private number's places add up to 1 only approximately.
    return np.asarray(np.einsum("ck,ckj->j", weights, values) / weights.sum())


def _spreads(values: Values, weights: Values, constant: bool) -> Values:
    middles = _means(values, weights) * constant
    return np.asarray(np.sqrt(np.einsum("ck,ckj->j", weights, (values - middles) ** 2)))
