"""Columns of weights: how many people a row stands for, and the replicate weights that survey files have.

Of replicate weights the conventions of R's `survey`: each column is a whole weight (`combined.weights`), and
a variance is a multiple of the squared moves of the estimate, under each column in its place, about that of
all rows (`mse = TRUE`; Wolter 2007, Introduction to Variance Estimation). They hold the noise of reports as
they hold what was drawn, but where a multiple is lessened as few people are left to be drawn: noise stays
whole, and what replicates do not show of it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from inference.analyses.cells import refuse_blanks
from inference.analyses.formula import known_column
from inference.analyses.naming import Name, Numbered, expanded
from inference.analyses.table import Codes, Table, Values
from ldp_client.documents.errors import InputError, UsageError

# Beyond all people, so that sums of squares stay numbers.
MOST_WEIGHT = 1e12
JK1, JKN, BRR, BOOTSTRAP = "jk1", "jkn", "brr", "bootstrap"
TYPES = (JK1, JKN, BRR, BOOTSTRAP)
# By how much replicates may move weights, in squares, of what those of people drawn one by one do: with the
# type's own multiple, and with a stated one, which knows how few are left to be drawn.
OWN_MULTIPLE, STATED_MULTIPLE = (2 / 3, 3 / 2), (1 / 50, 3 / 2)
# Of the squares of weights, what rounding leaves of those that add nothing to others.
NOTHING = 1e-10
# What all replicates together weigh, of what as many times all rows do.
ALIKE = (1 / 2, 2.0)
# By how much more than chance does the replicates' mean is away from a row's weight, in squares.
BY_CHANCE = 9


def positive(column: pd.Series, name: str, least: float = 1 / MOST_WEIGHT) -> Values:
    """Raises InputError unless all are numbers from `least` on, and not beyond all people."""
    if not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"{name} must hold numbers", code="weights.not_numbers")
    values = column.to_numpy(np.float64)
    good = np.isfinite(values) & (values >= least) & (values <= MOST_WEIGHT)
    if not good.all():
        row = int(np.flatnonzero(~good)[0]) + 1
        how = "positive" if least > 0 else "0 or more"
        raise InputError(
            f"{name} must be {how}, and at most {MOST_WEIGHT:.0e}: look at row {row}",
            code="weights.not_positive",
        )
    return values


def probabilities(column: pd.Series, name: str) -> None:
    """Raises InputError unless all are above 0, and at most 1."""
    over = np.flatnonzero(positive(column, name) > 1)
    if len(over):
        raise InputError(
            f"{name} must be probabilities, at most 1: look at row {over[0] + 1}", code="weights.above_one"
        )


def of_others(table: Table) -> tuple[str, ...]:
    """What totals take of those who answered another question, for a note."""
    if table.others is None:
        return ()
    if not table.others.counts.sum():
        return (
            "each person answered one question of this study, and no report of another question is here: "
            "totals are left out, as nothing tells how many people did not answer this one",
        )
    return (
        "each person answered one question of this study, drawn by chance: totals are the share among those "
        "who answered this one times the weight of all who answered any",
    )


class Moved(NamedTuple):
    """How an estimate's parts move. parts: (rows or replicates, answers). noise: variance that these lack."""

    parts: Values
    noise: Values

    def less(self, other: Moved) -> Moved:
        """Of the difference of two, of people of whom nobody is in both."""
        return Moved(self.parts - other.parts, self.noise + other.noise)


@dataclass(frozen=True)
class ReplicateWeights:
    """Which columns are replicate weights, and what they replicate.

    Args:
        columns: their names, or the beginning that they share before their numbers, 1, 2, ….
        kind: "jk1" and "jkn", jackknives without and with strata; "brr", balanced half samples; "bootstrap".
        scale: what squared moves are multiplied by: one number, or one for each column. None is (R − 1)/R
            for jk1 of R columns, 1/R for brr, 1/(R − 1) for bootstrap; jkn needs it.

    Raises:
        InputError: there is no such kind, or the scale is none.
    """

    columns: str | Sequence[str]
    kind: str
    scale: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.kind not in TYPES:
            raise UsageError(
                f"{self.kind!r} is no type of replicate weights: {', '.join(TYPES)} are",
                code="weights.unknown_replicate_type",
            )
        scales = np.atleast_1d(np.asarray([] if self.scale is None else self.scale, np.float64))
        if self.scale is not None and not (scales.size and np.all(np.isfinite(scales) & (scales > 0))):
            raise UsageError(
                "the scale of replicate weights must be positive: one number, or one for each",
                code="weights.scale_not_positive",
            )
        if self.scale is None and self.kind == JKN:
            raise UsageError(
                "replicate weights of type jkn need their scale: (n − 1)/n, of the n units of the stratum "
                "that each leaves one out of; one number, or one for each column, divided by commas",
                code="weights.scale_missing",
            )

    @property
    def names(self) -> list[Name]:
        """The columns, as they are asked for before a table's are known."""
        return [Numbered(self.columns)] if isinstance(self.columns, str) else list(self.columns)

    def of(self, table: Table, base: str) -> Replicates:
        """What they say of a table whose rows weigh `base`. Raises InputError where they cannot be."""
        known = [str(name) for name in table.public.columns]
        names = expanded(self.names, known)
        for name in names:
            known_column(name, known)
            refuse_blanks(table.public[name], name)
        if base in names or len(set(names)) < len(names):
            twice = next(name for name in names if name == base or names.count(name) > 1)
            raise InputError(
                f"{twice} is given twice: each replicate weight is a column of its own",
                code="weights.duplicate_column",
            )
        if len(names) < 2:
            raise UsageError(
                "one replicate weight says nothing of a variance: give all of them, two or more",
                code="weights.one_replicate",
            )
        columns = [positive(table.public[name], name, 0.0) for name in names]
        weights = table.public[base].to_numpy(np.float64)
        whole = np.column_stack(columns)
        samples = table.samples
        # Of samples of their own, those of the one that has least.
        degrees = min(_degrees(whole[rows]) for _, rows in samples)
        found = Replicates(whole, weights, self._scales(len(names)), tuple(names), degrees)
        for where, rows in samples:
            own = replace(found, weights=whole[rows], base=weights[rows])
            self._check(own, table.counts[rows], base, f"where {where}, " if where else "")
        return found

    def _scales(self, count: int) -> Values:
        own = {JK1: (count - 1) / count, BRR: 1 / count, BOOTSTRAP: 1 / (count - 1)}
        scales = np.atleast_1d(np.asarray(own[self.kind] if self.scale is None else self.scale, np.float64))
        if scales.size not in (1, count):
            raise InputError(
                f"there are {count} replicate weights, and {scales.size} scales: give one, or all",
                code="weights.wrong_scale_count",
            )
        return np.broadcast_to(scales, (count,)).copy()

    def _check(self, found: Replicates, counts: Codes, base: str, where: str) -> None:
        """Raises InputError for weights that are not whole, or that move by other than their type says.

        found: of one sample. where: what to call it.
        """
        factors = f"where they are factors, multiply them by {base}"
        whole = float(counts @ found.base)
        each = counts @ found.weights
        if not each.all():
            name = found.names[int(np.argmin(each))]
            raise InputError(
                f"{where}{name} is 0 in every row: it weighs nobody", code="weights.replicate_all_zero"
            )
        if not ALIKE[0] <= float(each.mean()) / whole <= ALIKE[1]:
            raise InputError(
                f"{where}replicate weights add up to {each.mean():,.6g} on average, and {base} to "
                f"{whole:,.6g}: each must be a whole weight; {factors}",
                code="weights.replicate_total_differs",
            )
        moves = (found.weights - found.base[:, None]) ** 2
        # Of many replicates a row's mean is its weight; of factors it is 1, whatever the row weighs.
        apart = float(counts @ (found.weights.mean(axis=1) - found.base) ** 2)
        spread = float(counts @ (found.base - whole / counts.sum()) ** 2)
        if apart > max(spread / 2, BY_CHANCE * float(counts @ moves.mean(axis=1)) / len(found.scales)):
            raise InputError(
                f"{where}replicate weights are not {base} on average, row by row, as whole weights are: "
                f"{factors}",
                code="weights.replicate_average_differs",
            )
        ratio = float(counts @ (moves @ found.scales)) / float(counts @ found.base**2)
        low, high = OWN_MULTIPLE if self.scale is None else STATED_MULTIPLE
        if not low <= ratio <= high:
            alone = "; where waves are of several types, fit each alone" if where else ""
            raise InputError(
                f"{where}replicate weights move {base} by {ratio:.2g} times what {self.kind} does, in "
                "squares: they are of another type, or need another scale (Fay's: brr, 1/(R (1 − ρ)²); "
                f"successive differences: bootstrap, 4/R){alone}",
                code="weights.replicate_spread_differs",
            )


def _degrees(weights: Values) -> float:
    """Degrees of freedom, as R's `survey` counts them: the rank of the weights less one."""
    squares = np.linalg.eigvalsh(weights.T @ weights)
    return float(max(int(np.sum(squares > NOTHING * squares.max())) - 1, 0))


@dataclass(frozen=True)
class Replicates:
    """weights: (rows, replicates). base: (rows,) those of the estimate. scales: (replicates,).

    degrees: of freedom.
    """

    weights: Values
    base: Values
    scales: Values
    names: tuple[str, ...]
    degrees: float

    @property
    def units(self) -> Codes | None:
        """(rows,) the units that were drawn: rows whose weights move together; None where all differ."""
        ways = np.random.default_rng(0).standard_normal(len(self.scales))
        moves = np.round(self.weights / self.base[:, None] @ ways, 6)
        found, places = np.unique(moves, return_inverse=True)
        return None if len(found) == len(moves) else places.ravel().astype(np.int64)

    def inside(self, rows: Values) -> Replicates:
        """Those of some rows alone, the others' as zeros: what moves these alone tells nothing of them."""
        weights = self.weights * rows[:, None]
        return replace(self, weights=weights, base=self.base * rows, degrees=_degrees(weights))

    def share(self, scores: Values, counts: Codes, noise: Values) -> tuple[Values, Moved]:
        """Weighted means of scores (rows, answers), and how they move. noise: (rows, answers) variances.

        Raises InputError where some replicate weighs nobody.
        """
        whole, each = float(counts @ self.base), counts @ self.weights
        if not each.all():
            raise InputError(
                f"{self.names[int(np.argmin(each))]} weighs nobody of some group: its share cannot be told "
                "from replicates; leave out --by, or join that group with another",
                code="weights.group_without_weight",
            )
        parts = replace(self, weights=self.weights / each, base=self.base / whole)
        return parts.total(scores, counts, noise)

    def total(self, scores: Values, counts: Codes, noise: Values) -> tuple[Values, Moved]:
        """Weighted sums, as `share`."""
        each = counts[:, None] * scores
        found = self.base @ each
        shown = (self.weights - self.base[:, None]) ** 2 @ self.scales
        lacks = (counts * (self.base**2 - shown)) @ noise
        return found, Moved(self.weights.T @ each - found, np.maximum(lacks, 0.0))

    def variance(self, moved: Values, noise: float) -> float:
        """Of an estimate that moves so (replicates,)."""
        return float(self.scales @ moved**2 + noise)

    def in_words(self, kind: str) -> str:
        """For a note."""
        return (
            f"estimates with weights alone have their variance from {len(self.scales)} replicate weights "
            f"({self.names[0]} to {self.names[-1]}, {kind}), with {self.degrees:.0f} degrees of freedom; the "
            "model's own intervals know nothing of them"
        )
