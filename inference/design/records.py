"""Half widths of linear regressions of records, from the information of their reports. Loads no JAX.

Reports are on second moments of u = (1, features, response), all in [−1, 1]: signs of sampled products, noisy
sums, or records with noise. Moments follow from the means, sds and correlations of the features and from the
line, so that information on moments gives that on the line by the chain rule.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from inference.default_priors import has_yes_no_response, regression_priors, state, with_stated
from inference.design.information import HALF, STEP, TRUTHS, half_width_of, sampled
from inference.design.truth import completed, first_possible
from inference.units import RecordUnits, has_levels
from ldp_client import mechanism_for
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question

Vector = NDArray[np.float64]
Places = NDArray[np.int64]
# As a share of its prior's width, at which a posterior of the line is not normal.
ROUGH = 0.1
MECHANISMS = ("sampled_products", "gaussian_statistics", "gaussian_record")
# The most truths that are drawn from the prior, to find TRUTHS that the records' bounds allow.
TRIED = 2_000
# A product's mean is at most this: the sign's information has a pole at 1.
MOST_MEAN = 0.98


def is_line_of_records(question: Question) -> bool:
    """Return True for a linear regression of numbers and yes/no, which has a formula."""
    return (
        question.ask == "record"
        and question.protocol is None
        and question.mechanism.name in MECHANISMS
        and not has_yes_no_response(question)
        and not has_levels(question)
    )


class RecordPrior:
    """The prior of a linear regression, whose parameters are in scaled units.

    They are intercept, slopes and sd of the line; means, sds of numbers and correlations of the features.

    sds: of the parameters. names: of the line. half_widths: {name: half of its 90 % interval}, in own units.
    """

    rough = ROUGH

    def __init__(self, question: Question) -> None:
        self.question, self.units = question, RecordUnits(question)
        priors, units = with_stated(question, regression_priors(question)), self.units
        unit = units.response.unit
        self._numbers = np.asarray([field.bounds is not None for field in question.features])
        slopes, d = unit / units.unit, len(units.names)
        self.names = ["intercept", *(f"coefficient[{name}]" for name in units.names), "sd"]
        # 1. Each parameter's distribution in its own unit, with that unit's zero and length.
        lkj = priors.get("feature_correlation", {}).get("concentration", 2.0)
        self._correlations, self._degrees = d * (d - 1) // 2, round(2 * lkj) + d - 1
        uniform, flat = state("uniform", low=-1.0, high=1.0), lkj + d / 2 - 1
        numbers = [place for place in range(d) if self._numbers[place]]
        self._stated = [
            (priors["centre"], *units.response),
            *((priors["coefficients"][units.owners[place]], 0.0, slopes[place]) for place in range(d)),
            (priors["sd"], 0.0, unit),
            *(
                (priors["feature_mean"][name], zero, own) if number else (uniform, 0.0, 1.0)
                for name, zero, own, number in zip(
                    units.names, units.zero, units.unit, self._numbers, strict=True
                )
            ),
            *((priors["feature_sd"][units.names[place]], 0.0, units.unit[place]) for place in numbers),
            *[(state("beta", a=flat, b=flat), 0.5, 0.5)] * self._correlations,
        ]
        self.sds = np.asarray([half_width_of(prior) / own / HALF for prior, _, own in self._stated])
        # 2. The line in own units is linear in the scaled one.
        self.turn = np.zeros((d + 2, len(self.sds)))
        self.turn[:, : d + 2] = np.diag([unit, *slopes, unit])
        self.turn[0, 1 : d + 1] = -slopes * units.zero
        self.half_widths = dict(zip(self.names, HALF * np.sqrt(self.turn**2 @ self.sds**2), strict=True))

    def truths(self, seed: int, given: Mapping[str, float]) -> list[Vector]:
        """Draw truths with the given line whose records are between their bounds, in scaled units.

        Raises InputError if the bounds allow none, and the errors of `completed`.
        """
        completed(self.question, dict.fromkeys(self.names, 1.0), given)
        random, line, d = np.random.default_rng(seed), len(self.names), len(self.units.names)
        drawn = np.column_stack(
            [(sampled(prior, TRIED, random) - zero) / unit for prior, zero, unit in self._stated]
        )
        # Correlations of normal draws have the law of Lewandowski, Kurowicka and Joe.
        normal = random.normal(size=(TRIED, self._degrees, d))
        products = normal.swapaxes(1, 2) @ normal
        scale = 1 / np.sqrt(np.diagonal(products, axis1=1, axis2=2))
        rows, columns = np.tril_indices(d, -1)
        drawn[:, len(self.sds) - self._correlations :] = (products * scale[:, :, None] * scale[:, None])[
            :, rows, columns
        ]
        own = np.asarray([list(self.values(point).values()) for point in drawn])
        for place, name in enumerate(self.names):
            own[:, place] = given.get(name, own[:, place])
        own[:, 0] -= self.units.response.zero
        drawn[:, :line] = np.linalg.solve(self.turn[:, :line], own.T).T
        return first_possible(self.question, filter(self._is_possible, drawn), TRUTHS)

    def values(self, point: Vector) -> dict[str, float]:
        """Return {name: value} of the line in own units."""
        own = self.turn @ point
        own[0] += self.units.response.zero
        return dict(zip(self.names, own.tolist(), strict=True))

    def _is_possible(self, point: Vector) -> bool:
        squares = np.diag(self.moments(point))
        norm = np.inf if self.question.norm is None else float(self.question.norm)
        return bool(squares.max() <= 1 and squares[1:-1].sum() <= norm**2)

    def moments(self, point: Vector) -> Vector:
        """Return E[uuᵀ], (d + 2, d + 2)."""
        d = len(self._numbers)
        intercept, slopes, sd, means = point[0], point[1 : d + 1], point[d + 1], point[d + 2 : 2 * d + 2]
        # A yes/no of −1 and 1 has the square 1.
        sds = np.sqrt(np.maximum(1 - means**2, 0))
        sds[self._numbers] = point[2 * d + 2 : len(point) - self._correlations]
        correlation = np.eye(d)
        correlation[np.tril_indices(d, -1)] = point[len(point) - self._correlations :]
        covariance = sds[:, None] * (correlation + np.tril(correlation, -1).T) * sds
        cross = covariance @ slopes
        spread = np.block(
            [[covariance, cross[:, None]], [cross[None], np.full((1, 1), slopes @ cross + sd**2)]]
        )
        middle = np.concatenate([[1.0], means, [intercept + slopes @ means]])
        return np.outer(middle, middle) + np.pad(spread, ((1, 0), (1, 0)))

    def widths(
        self, question: Question, truths: Sequence[Vector], answers: Sequence[int]
    ) -> dict[str, Vector]:
        """Return {parameter: (numbers of answers,)}: medians over truths. question: at its epsilon."""
        steps = STEP * np.diag(self.sds)
        precision = np.diag(1 / self.sds**2)
        each = []
        for truth in truths:
            first, other, own = _information(question, self.moments(truth))
            moved = [self.moments(truth + step) - self.moments(truth - step) for step in steps]
            slopes = np.stack(
                [change[first, other] / (2 * step.max()) for change, step in zip(moved, steps, strict=True)]
            )
            whole = slopes @ own @ slopes.T
            covariances = [np.linalg.inv(n * whole + precision) for n in answers]
            each.append([np.diag(self.turn @ one @ self.turn.T) for one in covariances])
        halves = HALF * np.sqrt(np.median(each, axis=0))
        return dict(zip(self.names, halves.T, strict=True))


def _information(question: Question, second: Vector) -> tuple[Places, Places, Vector]:
    """Return places (i, j) of reported moments, and one report's information on them."""
    mechanism = mechanism_for(question)
    if isinstance(mechanism, SampledProducts):
        first, other = np.asarray(mechanism.coordinates).T
        often = np.zeros(len(first))
        for block, weight in zip(mechanism.blocks, mechanism.weights, strict=True):
            np.add.at(often, np.asarray(block), weight / mechanism.total)
        gain = float(mechanism.gain)
        means = np.clip(second[first, other], -MOST_MEAN, MOST_MEAN)
        return first, other, np.diag(often * gain**2 / (1 - (gain * means) ** 2))
    first, other = (places[1:] for places in np.triu_indices(len(second)))
    scale, noise = np.ones(len(second)), np.zeros(len(second))
    added = 0.0
    if isinstance(mechanism, GaussianStatistics):
        scale[[0, -1]] = mechanism.scaled_weight
        added = mechanism.noise_sd**2
    else:
        record = cast(GaussianRecord, mechanism)
        noise[1:] = record.feature_noise_sd
        noise[-1] = record.response_noise_sd
    # The covariance of products of normal numbers (Isserlis), and of the noise: products of two entries are
    # sent times √2.
    moments = (second + np.diag(noise**2)) * np.outer(scale, scale)
    middle = moments[0] / scale[0]
    means = middle[first] * middle[other]
    covariance = moments[np.ix_(first, first)] * moments[np.ix_(other, other)] - 2 * np.outer(means, means)
    covariance += moments[np.ix_(first, other)] * moments[np.ix_(other, first)]
    covariance += np.diag(np.where(first == other, 1.0, 0.5) * added)
    sent = scale[first] * scale[other]
    return first, other, np.linalg.inv(covariance) * np.outer(sent, sent)
