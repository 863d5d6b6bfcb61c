"""What no report says of a number cut into bins: where within its bin an answer lies.

Models take answers as spread smoothly. Whole or round numbers are not: with cuts at what people say they lie
at one end of each bin, and where many are at a bound, at that. Means and sds of the number are therefore
given over all laws within the bins; of the line it is said where it rests on the smooth one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.models.base import Draws
from inference.models.leveled_cells import Levels, levels_of, shares_by_field
from inference.results.diagnostics import listed
from inference.units import RecordUnits, field_units
from ldp_client.documents.study import Field
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question

Values = NDArray[np.float64]
Parameters = Mapping[str, Values]

# Of an interval, both ends.
TAILS = (0.05, 0.95)


class Bins(NamedTuple):
    """low, high (k,): the least and the largest answer of each bin, in own units."""

    low: Values
    high: Values


def bins_of(field: Field) -> Bins:
    """A number's bins, of whole numbers where each of several cuts is halfway between two."""
    assert field.bounds is not None
    ends = np.asarray([float(end) for end in (field.bounds[0], *field.cuts, field.bounds[1])])
    if not are_whole(field):
        return Bins(ends[:-1], ends[1:])
    return Bins(np.ceil(ends[:-1]), np.floor(ends[1:]))


def are_whole(field: Field) -> bool:
    """Whether cuts say that answers are whole numbers."""
    assert field.bounds is not None
    halves = all(2 * float(cut) % 2 == 1 for cut in field.cuts)
    return len(field.cuts) > 1 and halves and all(float(bound).is_integer() for bound in field.bounds)


def mean_bounds(bins: Bins, shares: Values) -> tuple[Values, Values]:
    """The least and the largest mean of laws that give the bins these shares (…, k)."""
    return shares @ bins.low, shares @ bins.high


def sd_bounds(bins: Bins, shares: Values) -> tuple[Values, Values]:
    """The least and the largest sd of such laws.

    A variance is the least mean square distance from any one place, so that both bounds are that of answers
    as near to a place as their bins allow, or as far, from the place where it is least.
    """
    low, high = bins
    each, edges = np.arange(len(low)), np.arange(len(low) + 1)[:, None]
    # From a place in a bin, or between two, answers below are nearest at their bins' upper ends.
    near = np.concatenate(
        [np.where(each < each[:, None], high, low), np.where(each < edges[1:-1], high, low)]
    )
    counted = np.concatenate([1 - np.eye(len(low)), np.ones((len(low) - 1, len(low)))])
    places = np.concatenate([low, high[:-1]]), np.concatenate([high, low[1:]])
    least = _least_square(near, shares, counted, *places)
    # From one between two bins' middles the others way around.
    far, middle = np.where(each < edges, low, high), (low + high) / 2
    places = np.append(low[0], middle), np.append(middle, high[-1])
    largest = _least_square(far, shares, np.ones_like(far), *places)
    return np.sqrt(least), np.sqrt(largest)


def _least_square(at: Values, shares: Values, counted: Values, low: Values, high: Values) -> Values:
    """The least over rows i of at (rows, k), and over places in low[i]…high[i], of Σ shares (at − place)²."""
    weight, first, second = (shares @ (counted * at**power).T for power in (0, 1, 2))
    place = np.clip(first / np.maximum(weight, 1e-12), low, high)
    return np.maximum(second - 2 * place * first + place**2 * weight, 0.0).min(axis=-1)


class _Number:
    """A number in bins, in own units: of shares (…, k) and means (…, k) within them, as modelled."""

    def __init__(self, asked: Field, field: Levels, shares: Values) -> None:
        zero, unit = field_units(asked)
        self.name, self.bins, self.shares = asked.id, bins_of(asked), shares
        self.mean = zero + unit * np.asarray(field.within(shares)[0])

    def laws(self) -> Iterator[Values]:
        """Other means within bins (…, k): all at one end of them, or those at a bound at that."""
        low, high = self.bins
        for ends in self.bins:
            yield np.broadcast_to(ends, self.shares.shape)
        for first, last in product((self.mean[..., 0], low[0]), (self.mean[..., -1], high[-1])):
            mean = self.mean.copy()
            mean[..., 0], mean[..., -1] = first, last
            yield mean

    def moved(self, intercept: Values, slope: Values, mean: Values) -> tuple[Values, Values]:
        """Intercept and slope that fit as well, about, where the means within bins are these."""
        own, other = (self.shares * self.mean).sum(axis=-1), (self.shares * mean).sum(axis=-1)
        away = mean - other[..., None]
        both = (self.shares * away * (self.mean - own[..., None])).sum(axis=-1)
        least = 1e-12 * (self.bins.high[-1] - self.bins.low[0]) ** 2
        turned = slope * both / np.maximum((self.shares * away**2).sum(axis=-1), least)
        return intercept + slope * own - turned * other, turned


def _numbers(question: Question, mechanism: SampledProducts, sites: Draws) -> list[_Number]:
    fields = levels_of(mechanism)
    shares = shares_by_field(fields, np.asarray(sites["shares"]))
    return [
        _Number(asked, field, own)
        for asked, field, own in zip(question.features, fields, shares, strict=True)
        if asked.cuts
    ]


def over_all_laws(
    question: Question, mechanism: SampledProducts, sites: Draws, named: Parameters
) -> dict[str, Values]:
    """The parameters, means and sds of numbers in bins over all laws within these.

    One half of the draws is the least value and one half the largest: a 90 % interval then holds the truth
    in nine of ten studies, wherever within the bounds it is (Imbens & Manski 2004).
    """
    found = dict(named)
    for number in _numbers(question, mechanism, sites):
        for name, bounds in (("mean", mean_bounds), ("sd", sd_bounds)):
            low, high = bounds(number.bins, number.shares)
            coin = np.random.default_rng(len(found)).random(low.shape) < 0.5
            found[f"{name}[{number.name}]"] = np.where(coin, low, high)
    return found


def resting(
    question: Question, mechanism: SampledProducts, sites: Draws, named: Parameters
) -> tuple[str, ...]:
    """A reason for each number where other laws within its bins take the line out of its own interval."""
    found = []
    for number in _numbers(question, mechanism, sites):
        outside = []
        for names in _lines(question, number.name):
            moved = [number.moved(named[names[0]], named[names[1]], law) for law in number.laws()]
            middles = np.median(moved, axis=(-2, -1))
            outside += [
                f"{name} {middle.min():.3g} to {middle.max():.3g}"
                for name, middle in zip(names, middles.T, strict=True)
                if middle.min() < np.quantile(named[name], TAILS[0])
                or middle.max() > np.quantile(named[name], TAILS[1])
            ]
        if outside:
            found.append(
                f"where within its bins {number.name} lies no report says, and the line takes it as spread "
                f"smoothly: were the answers at one end of each bin, or many at a bound, it would be about "
                f"{listed(outside)}; where people say whole or round numbers, ask with more cuts, halfway "
                "between them"
            )
    return tuple(found)


def _lines(question: Question, number: str) -> Iterator[tuple[str, str]]:
    """Names of intercept and slope along a number: where all else is 0, and what both gain with a column."""
    yield "intercept", f"coefficient[{number}]"
    units = RecordUnits(question)
    for (i, j), product_name in zip(units.crossed, units.product_names, strict=True):
        one, other = units.names[i], units.names[j]
        if number in (one, other):
            yield f"coefficient[{other if one == number else one}]", f"coefficient[{product_name}]"


def note(question: Question) -> tuple[str, ...]:
    """What means and sds of numbers in bins are."""
    cut = [field for field in question.features if field.cuts]
    whole = [field.id for field in cut if are_whole(field)]
    found = (
        f"means and sds of {listed([field.id for field in cut])} are over all laws within the bins: their "
        "intervals reach from the least to the largest that the bins' shares allow, which more reports do "
        "not bring nearer",
    )
    halves = (
        f"answers to {listed(whole)} are taken as whole numbers there, as each cut is halfway between two",
    )
    return (*(found if cut else ()), *(halves if whole else ()))
