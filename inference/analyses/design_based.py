"""Shares and totals as survey samplers estimate them: weighted, the channel undone, a linearised variance.

No model of the outcome: Horvitz and Thompson's estimator of totals, Hájek's of shares, of scores that are
unbiased for each person's answer whatever it is (Chaudhuri 2011). Primary sampling units are taken as drawn
with replacement within strata (Särndal, Swensson & Wretman 1992, 4.6), as R's `survey` takes them by default:
where many of a stratum's units were drawn, the variance is rather too large. Where people's own inclusion
probabilities are known, Deville's variance without replacement, to which the noise's is added, stands beside
it: that of R's `RRTCS`. Intervals are wide where the model's are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.few_reports import Lacking, People, bounds_of, lacking
from inference.analyses.samples import Sampled, codes_of_levels
from inference.analyses.table import Codes, Private, Table, Values
from inference.analyses.weights import Moved
from inference.results.quantity import Quantity
from ldp_client.documents.errors import InputError

CHAINS, DRAWS = 4, 1000
# More differences between groups than these are left out.
MOST_CONTRASTS = 60


def _answered(column: Private) -> Values:
    """(rows,) 1 where there is a report; those without have the last vector."""
    reports = len(column.vectors) - (column.missing > 0)
    return np.asarray(column.codes < reports, np.float64)


def design_based(table: Table, name: str, sampled: Sampled, by: str | None = None) -> list[Quantity]:
    """Shares of a private column's answers, totals, and with `by` those of groups and their differences.

    Of waves, those of each. Raises InputError where the reports do not tell the answers apart, a share is
    open, or a stratum has one unit alone, whose variance nothing tells.
    """
    column = table.private[name]
    if column.unknown:
        raise InputError(
            f"{name}: its design leaves a share open, and an estimate with weights needs it known",
            code="weights.share_open",
        )
    if column.missing and not table.with_others:
        raise InputError(
            f"{name} has rows without a report: leave them out before weights are used",
            code="weights.rows_without_report",
        )
    if table.with_others:
        # Deville's variance knows nothing of the question that each drew; and the others may not be here.
        sampled = replace(sampled, chances=None, scaled=sampled.scaled and bool(column.missing))
    apart, answered = bool(table.waves), _answered(column)
    asked = _Asked(column, scores_of(column), bounds_of(column), table.counts, sampled, answered, apart)
    if table.waves:
        # Each is a sample of its own: together they are a sample of nobody.
        return list(asked.of_groups(table.waves, *codes_of_levels(table, table.waves)))
    found = list(asked.of_all())
    if by is not None:
        found += asked.of_groups(by, *codes_of_levels(table, by))
    return found


@dataclass(frozen=True)
class _Asked:
    column: Private
    scores: Values
    bounds: Sequence[tuple[float, float]]
    counts: Codes
    sampled: Sampled
    # (rows,) 1 where a report answers the question, 0 where it answers another, which was drawn by chance.
    answered: Values
    # Whether groups are samples of their own.
    apart: bool = False

    @property
    def _places(self) -> list[int]:
        answers = len(self.column.answers)
        return [1] if answers == 2 else list(range(answers))

    def of_all(self) -> Iterator[Quantity]:
        """Shares and totals of everybody."""
        rows = np.ones(len(self.counts))
        whole = float(self.counts @ self.sampled.weights)
        shares, moved = self._share(self.answered)
        lacks = self._lacking(moved, self.answered)
        yield from self._each("share {}", "share of {}", shares, moved, 1 / whole, lacks)
        if self.sampled.scaled:
            lacks = [one.times(whole) for one in lacks]
            yield from self._each("total {}", "number of people with {}", *self._total(rows), 1.0, lacks)

    def _share(self, rows: Values) -> tuple[Values, Moved]:
        """Weighted means of the scores of some rows, 0 for others, and how these move."""
        if self.sampled.replicates is not None:
            inside = self.sampled.replicates.inside(rows)
            return inside.share(self.scores, self.counts, noise_of(self.scores))
        shares, linear = linearised(self.scores, self.sampled.weights * rows, self.counts)
        linear = linear * _grown(self.counts, self.sampled, rows)[:, None]
        return shares, Moved(linear, np.zeros(linear.shape[1]))

    def _total(self, rows: Values) -> tuple[Values, Moved]:
        """Weighted sums, as `_share`, over all of these rows, whichever question each answers."""
        if not self.answered.all():
            return self._projected(rows)
        if self.sampled.replicates is not None:
            inside = self.sampled.replicates.inside(rows)
            return inside.total(self.scores, self.counts, noise_of(self.scores))
        each = (self.sampled.weights * rows)[:, None] * self.scores
        return self.counts @ each, Moved(each, np.zeros(each.shape[1]))

    def _projected(self, rows: Values) -> tuple[Values, Moved]:
        """The share among those asked times the weight of all: a ratio estimate, as each drew by chance."""
        shares, moved = self._share(rows * self.answered)
        weights = self.sampled.weights * rows
        whole = float(self.counts @ weights)
        if self.sampled.replicates is None:
            return whole * shares, Moved(whole * moved.parts + weights[:, None] * shares, moved.noise)
        wholes = self.counts @ self.sampled.replicates.inside(rows).weights
        parts = wholes[:, None] * (shares + moved.parts) - whole * shares
        return whole * shares, Moved(parts, whole**2 * moved.noise)

    def _lacking(self, moved: Moved, rows: Values) -> list[Lacking]:
        """Of each answer what the variance of its share lacks."""
        people = People(self.counts, self.sampled.weights * rows, self.sampled.clusters)
        return [
            lacking(self._variance(moved, place), self.scores[:, place], people, bounds).of_units(
                freedom(self.counts, self.sampled, rows), self.sampled.unit
            )
            for place, bounds in enumerate(self.bounds)
        ]

    def _each(
        self, name: str, words: str, values: Values, moved: Moved, unit: float, lacks: Sequence[Lacking]
    ) -> Iterator[Quantity]:
        """unit: what weights are multiplied by."""
        for place in self._places:
            what = f"{self.column.name} = {self.column.answers[place]}"
            named, said = name.format(what), words.format(what)
            lacks_here = lacks[place]
            yield self._quantity(named, said, values[place], self._variance(moved, place), lacks_here)
            if self.sampled.chances is None:
                continue
            noise = self.sampled.weights * unit**2 * noise_of(self.scores[:, place])
            drawn = without_replacement(moved.parts[:, place], self.counts, self.sampled)
            variance = drawn + float(self.counts @ noise)
            # Of a few people, estimates of what the noise adds may be below zero.
            if variance > 0:
                how = "drawn without replacement"
                yield self._quantity(
                    f"{named}, {how}", f"{said}, people being {how},", values[place], variance, lacks_here
                )

    def of_groups(self, by: str, codes: Codes, levels: tuple[str, ...]) -> Iterator[Quantity]:
        """Shares and totals of each group, and differences: units outside a group count as zeros."""
        every = [(codes == place).astype(np.float64) for place in range(len(levels))]
        told = [place for place, rows in enumerate(every) if (rows * self.answered).any()]
        levels, inside = tuple(levels[place] for place in told), [every[place] for place in told]
        shares, moved = zip(*(self._share(rows * self.answered) for rows in inside), strict=True)
        lacks = [self._lacking(one, rows * self.answered) for one, rows in zip(moved, inside, strict=True)]
        for place, answer in ((one, self.column.answers[one]) for one in self._places):
            what = f"{self.column.name} = {answer}"
            for group, rows in enumerate(inside):
                words, lacks_here = f"{by} = {levels[group]}", lacks[group][place]
                variance = self._variance(moved[group], place)
                said = f"share of {what} where {words}"
                yield self._quantity(
                    f"share {what}, {words}", said, shares[group][place], variance, lacks_here
                )
                if self.sampled.scaled:
                    totals, each = self._total(rows)
                    yield self._quantity(
                        f"total {what}, {words}",
                        f"number of people with {what} where {words}",
                        float(totals[place]),
                        self._variance(each, place),
                        lacks_here.times(float(self.counts @ (self.sampled.weights * rows))),
                    )
            for one, other in list(combinations(range(len(levels)), 2))[:MOST_CONTRASTS]:
                pair = f"{by}: {levels[other]} − {levels[one]}"
                yield self._quantity(
                    f"share {what}, {pair}",
                    f"difference of the share of {what}, {pair},",
                    shares[other][place] - shares[one][place],
                    self._of_two(moved[one], moved[other], place),
                    lacks[one][place].beside(lacks[other][place]),
                    contrast=True,
                )

    def _of_two(self, one: Moved, other: Moved, place: int) -> float:
        """The variance of a difference of two groups."""
        if self.apart:
            return self._variance(one, place) + self._variance(other, place)
        return self._variance(other.less(one), place)

    def _variance(self, moved: Moved, place: int) -> float:
        parts = moved.parts[:, place]
        if self.sampled.replicates is not None:
            return self.sampled.replicates.variance(parts, float(moved.noise[place]))
        return float(covariance_of(parts[:, None], self.counts, self.sampled)[0, 0])

    def _quantity(
        self, name: str, words: str, value: float, variance: float, lacks: Lacking, *, contrast: bool = False
    ) -> Quantity:
        draws = as_draws(value, variance + lacks.extra, lacks.degrees)
        said = f"{words} as estimated with weights alone, without a model{lacks.words}"
        return Quantity(f"design-based {name}", said, draws, contrast, origin=draws)


def as_draws(value: float, variance: float, degrees: float = np.inf) -> Values:
    """Draws (chains, draws) with the quantiles of an estimate's t law; of it nothing is left to chance."""
    size = CHAINS * DRAWS
    law = stats.t.ppf((np.arange(size) + 0.5) / size, degrees)
    mixed = np.random.default_rng(0).permutation(law)
    return np.asarray(value + np.sqrt(variance) * mixed).reshape(CHAINS, DRAWS)


def scores_of(column: Private) -> Values:
    """(rows, answers): numbers whose mean over a person's reports is 1 at the true answer, else 0."""
    if column.looks is None:
        raise InputError(
            f"{column.name}: weights are for answers that are labels, of which reports tell without a model; "
            "of a private number leave them out, or average over a census (poststratify)",
            code="weights.private_number",
        )
    looks, scores = column.looks, np.zeros_like(column.vectors)
    for part, matrix in enumerate(looks.chances):
        if np.linalg.matrix_rank(matrix) < len(column.answers):
            raise InputError(
                f"{column.name}: its reports do not tell all answers apart without a model",
                code="weights.answers_not_separable",
            )
        inside = looks.part == part
        scores[: len(inside)][inside] = looks.shows[inside] @ np.linalg.pinv(matrix)
    return np.asarray(scores[column.codes])


def estimate(
    scores: Values, weights: Values, counts: Codes, sampled: Sampled | None = None
) -> tuple[Values, NDArray[np.float64]]:
    """Hájek's weighted means (answers,) and their covariance (answers, answers).

    scores: (rows, answers). counts: (rows,) how many people each row is. sampled: None where people were
    drawn independently of one another.
    """
    shares, linear = linearised(scores, weights, counts)
    return shares, covariance_of(linear, counts, sampled or Sampled(weights))


def total(
    scores: Values, weights: Values, counts: Codes, sampled: Sampled | None = None
) -> tuple[Values, NDArray[np.float64]]:
    """Horvitz and Thompson's totals (answers,) and their covariance, as `estimate`."""
    each = weights[:, None] * scores
    return counts @ each, covariance_of(each, counts, sampled or Sampled(weights))


def linearised(scores: Values, weights: Values, counts: Codes) -> tuple[Values, Values]:
    """Weighted means, and what each person adds to their error."""
    whole = float(counts @ weights)
    shares = (counts * weights) @ scores / whole
    return shares, weights[:, None] * (scores - shares) / whole


def covariance_of(values: Values, counts: Codes, sampled: Sampled) -> NDArray[np.float64]:
    """The covariance of the sum of values over everybody, units being drawn with replacement within strata.

    values: (rows, k). Raises InputError for a stratum with one unit.
    """
    units, times, strata = _units(values, counts, sampled)
    found = np.zeros((values.shape[1], values.shape[1]))
    for stratum in np.unique(strata):
        inside = strata == stratum
        size = float(times[inside].sum())
        if size < 2:
            raise InputError(_one_unit(sampled, int(stratum)), code="weights.one_unit_in_stratum")
        moved = units[inside] - times[inside] @ units[inside] / size
        found += size / (size - 1) * (moved * times[inside, None]).T @ moved
    return found


def without_replacement(values: Values, counts: Codes, sampled: Sampled) -> float:
    """Deville's (1993) variance of the sum of values (rows,) over people drawn without replacement.

    By their own probabilities, a fixed number within each stratum. The noise of reports, which drawing more
    of the people does not lessen, is not in it.
    """
    assert sampled.chances is not None
    strata = sampled.strata if sampled.strata is not None else np.zeros(len(counts), np.int64)
    rest, found = counts * (1 - sampled.chances), 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        whole = float(rest[inside].sum())
        # A stratum of which everybody was drawn adds nothing.
        if whole > 0:
            moved = values[inside] - rest[inside] @ values[inside] / whole
            squares = float(np.sum(counts[inside] * ((1 - sampled.chances[inside]) / whole) ** 2))
            found += float(rest[inside] @ moved**2) / (1 - squares)
    return found


def noise_of(scores: Values) -> Values:
    """Without bias, the variance that the noise adds to each score: s² − s, as the truth is 0 or 1."""
    return scores * (scores - 1)


def _units(values: Values, counts: Codes, sampled: Sampled) -> tuple[Values, Values, Codes]:
    """The sums of the units that were drawn, how often each came, and their strata."""
    strata = sampled.strata if sampled.strata is not None else np.zeros(len(counts), np.int64)
    if sampled.clusters is None:
        return values, counts.astype(np.float64), strata
    count = int(sampled.clusters.max()) + 1
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, sampled.clusters, values * counts[:, None])
    own = np.zeros(count, np.int64)
    own[sampled.clusters] = strata
    return sums, np.ones(count), own


def freedom(counts: Codes, sampled: Sampled, rows: Values | None = None) -> float:
    """Degrees of freedom of an estimate of some rows, those above 0, or of all.

    Units that hold some of them, less the strata of these, as R's `survey` counts them (`degf`); or those of
    replicates. Units without any tell nothing of them.
    """
    if sampled.replicates is not None:
        return (sampled.replicates if rows is None else sampled.replicates.inside(rows)).degrees
    sizes = _sizes(counts, sampled, rows)
    return float(sizes.sum() - np.count_nonzero(sizes))


def _sizes(counts: Codes, sampled: Sampled, rows: Values | None = None) -> Values:
    """How many units of each stratum hold some of the rows."""
    strata = sampled.strata if sampled.strata is not None else np.zeros(len(counts), np.int64)
    own = counts > 0 if rows is None else (counts > 0) & (rows > 0)
    size = int(strata.max()) + 1
    if sampled.clusters is None:
        return np.bincount(strata[own], counts[own], size).astype(np.float64)
    pairs = np.unique(np.column_stack([strata[own], sampled.clusters[own]]), axis=0)
    return np.bincount(pairs[:, 0], minlength=size).astype(np.float64)


def _grown(counts: Codes, sampled: Sampled, rows: Values) -> Values:
    """(rows,) by how much a share's parts grow, as about it the m units of a group alone vary.

    Their sum of squares is (m − 1)/m of what they are about the truth, and n/(n − 1), of all units of the
    stratum, makes up for none of that.
    """
    whole, own = _sizes(counts, sampled), _sizes(counts, sampled, rows)
    several = own > 1
    factors = np.ones(len(whole))
    factors[several] = own[several] * (whole[several] - 1) / ((own[several] - 1) * whole[several])
    strata = sampled.strata if sampled.strata is not None else np.zeros(len(counts), np.int64)
    return np.asarray(np.sqrt(factors)[strata])


def _one_unit(sampled: Sampled, stratum: int) -> str:
    where = f"the stratum {sampled.levels[stratum]}" if sampled.levels else "the table"
    return (
        f"{where} has one {sampled.unit} alone, and nothing tells how others would differ: join it with the "
        "stratum that is most like it"
        if sampled.levels
        else f"{where} has one {sampled.unit} alone, and nothing tells how others would differ"
    )
