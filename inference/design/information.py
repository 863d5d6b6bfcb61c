"""Half widths of posteriors without simulation, from the information of the reports. Loads no JAX.

The posterior of a number's law is taken as normal, with the information of n reports at the truth and the
prior's.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammainc, ndtr, ndtri, pdtr

from inference.default_priors import DEFAULTS, Stated, with_stated
from inference.design import shares
from inference.design.truth import completed
from inference.results.intervals import USUAL
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.mechanisms.number import Gaussian, Laplace
from schemas import Question
from summaries.reductions.histogram import REACH, histogram_edges

Vector = NDArray[np.float64]

BY_INFORMATION = "half the 90 % interval from the information of the reports and of the prior"
# Half of a 90 % interval, in sds; its ends.
HALF, TAILS = float(ndtri(0.95)), USUAL.levels
DEVICES = (1_000, 10_000, 100_000)
# Truths that are drawn from the prior if none is stated; fewer of more than MOST_TOGETHER choices.
TRUTHS, FEW_TRUTHS = 20, 3
# As a share of its prior's width. For an sd at a share of 0.45 the mean was 0.66 of the simulated one.
ROUGH = 0.25
# The number of places for answers between the bounds; a parameter's step, as a share of its prior's sd.
PLACES, STEP = 1025, 1e-4
# Draws of a prior whose width has no formula.
PRIOR_DRAWS = 20_000


# The distribution functions of the laws of a number, in own units.
CDFS: Mapping[str, Callable[..., Any]] = {
    "normal": lambda x, mean, sd: ndtr((x - mean) / sd),
    "exponential": lambda x, rate: -np.expm1(-rate * np.maximum(x, 0)),
    "lognormal": lambda x, log_mean, log_sd: ndtr((np.log(np.maximum(x, 1e-300)) - log_mean) / log_sd),
    "gamma": lambda x, shape, mean: gammainc(shape, shape * np.maximum(x, 0) / mean),
    "weibull": lambda x, shape, scale: -np.expm1(-((np.maximum(x, 0) / scale) ** shape)),
    # The place between the bounds.
    "beta": lambda x, a, b: betainc(a, b, np.clip(x, 0, 1)),
    "poisson": lambda x, rate: np.where(x < 0, 0.0, pdtr(np.floor(np.maximum(x, 0)), rate)),
    "geometric": lambda x, p: np.where(x < 0, 0.0, 1 - (1 - p) ** (np.floor(x) + 1)),
}
WHOLE = ("poisson", "geometric")
SHARES = ("bernoulli", "multinomial")
NOISE: Mapping[str, Callable[[Vector], Vector]] = {
    "laplace": lambda x: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2),
    "gaussian": ndtr,
}
# How NumPy draws from the distributions that priors may have.
SAMPLERS: Mapping[str, Callable[..., Vector]] = {
    "normal": lambda random, n, loc, scale: random.normal(loc, scale, n),
    "student_t": lambda random, n, degrees_of_freedom, loc, scale: (
        loc + scale * random.standard_t(degrees_of_freedom, n)
    ),
    "half_normal": lambda random, n, scale: np.abs(random.normal(0, scale, n)),
    "log_normal": lambda random, n, loc, scale: random.lognormal(loc, scale, n),
    "gamma": lambda random, n, shape, rate: random.gamma(shape, 1 / rate, n),
    "inverse_gamma": lambda random, n, shape, scale: scale / random.gamma(shape, 1, n),
    "beta": lambda random, n, a, b: random.beta(a, b, n),
    "uniform": lambda random, n, low, high: random.uniform(low, high, n),
}


class Prior:
    """The prior of a question of shares, or of a number with a law.

    each: {parameter: its marginal distribution, as stated}. half_widths: {parameter: half of its 90 %
    interval before any report}. rough: as a share of these, half widths at which posteriors are not normal.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self.each: dict[str, Stated] = {}
        for name, stated in with_stated(question, DEFAULTS[question.model.name](question)).items():
            if stated["distribution"] != "dirichlet":
                self.each[name] = stated
                continue
            labels = question.choices
            each = np.broadcast_to(np.asarray(stated["concentration"], float), (len(labels),)).tolist()
            for label, a in zip(labels, each, strict=True):
                self.each[f"p[{label}]"] = {"distribution": "beta", "a": a, "b": float(np.sum(each)) - a}
        self.half_widths = {name: half_width_of(stated) for name, stated in self.each.items()}
        # Those of shares are computed on a grid.
        self.rough = np.inf if question.model.name in SHARES else ROUGH

    def truths(self, seed: int, given: Mapping[str, float]) -> list[dict[str, float]]:
        """Draw the truths that a plan takes its medians over, with the given parameters; distinct ones."""
        drawn = self.draws(FEW_TRUTHS if len(self.each) > shares.MOST_TOGETHER else TRUTHS, seed)
        truths = [{**values, **completed(self._question, values, given)} for values in drawn]
        return list({tuple(truth.items()): truth for truth in truths}.values())

    def values(self, truth: dict[str, float]) -> dict[str, float]:
        """Return {parameter: value} of a truth."""
        return truth

    def draws(self, count: int, seed: int) -> list[dict[str, float]]:
        """Draw parameters together: the shares of choices add up to 1."""
        random = np.random.default_rng(seed)
        drawn = {name: sampled(stated, count, random) for name, stated in self.each.items()}
        names = [f"p[{label}]" for label in self._question.choices or ()]
        if self._question.model.name == "multinomial":
            parts = np.stack([random.gamma(self.each[name]["a"], 1, count) for name in names])
            parts = np.maximum(parts, 1e-300)
            drawn |= dict(zip(names, parts / parts.sum(axis=0), strict=True))
        return [{name: float(values[i]) for name, values in drawn.items()} for i in range(count)]

    def widths(
        self, question: Question, truths: Sequence[Mapping[str, float]], answers: Sequence[int]
    ) -> dict[str, Vector]:
        """Return {parameter: (numbers of answers,)}: medians over truths. question: at its epsilon."""
        if question.model.name in SHARES:
            widths_at = partial(shares.widths_of_shares, question, answers=answers, priors=self.each)
        else:
            channel = number_channel(question, _answers(question))
            widths_at = partial(_number, question, answers=answers, prior=self, channel=channel)
        each = [widths_at(truth) for truth in truths]
        return {name: np.median([halves[name] for halves in each], axis=0) for name in each[0]}


def sampled(stated: Stated, count: int, random: np.random.Generator) -> Vector:
    """Draw from a stated distribution, (count,)."""
    parameters = {name: value for name, value in stated.items() if name != "distribution"}
    return SAMPLERS[stated["distribution"]](random, count, **parameters)


def half_width_of(prior: Stated) -> float:
    """Return half of a distribution's 90 % interval."""
    if prior["distribution"] == "beta":
        ends = betaincinv(prior["a"], prior["b"], TAILS)
    else:
        ends = np.quantile(sampled(prior, PRIOR_DRAWS, np.random.default_rng(0)), TAILS)
    return float(ends[1] - ends[0]) / 2


def has_information(question: Question) -> bool:
    """Return True if this module has a formula for a question's model and mechanism."""
    if question.protocol is not None:
        return False
    if question.model.name in SHARES:
        concentration = question.model.prior.get("p", {}).get("concentration")
        known = question.model.name == "bernoulli" or not isinstance(concentration, dict)
        return known and shares.share_variances(question, shares.even_shares(question)) is not None
    return question.model.name in CDFS and question.mechanism.name in NOISE and not question.refusal


def share_power(
    question: Question, parameter: str, groups: Sequence[Mapping[str, float]], seed: int
) -> Callable[[int], float]:
    """Return a function of each group's answers: how often the 90 % interval of a difference excludes 0.

    It is a median over truths. groups: what is stated of the group with the lower share, and of the other.
    """
    prior = Prior(question)
    posteriors = [
        [shares.share_posteriors(question, parameter, truth, prior.each) for truth in pair]
        for pair in zip(*(prior.truths(seed, given) for given in groups), strict=True)
    ]

    def power(answers: int) -> float:
        found = []
        for low, high in posteriors:
            rows, above = np.sort(low(answers)), high(answers)
            lower = np.stack([np.searchsorted(row, above) for row in rows]) / rows.shape[1]
            found.append(np.mean(lower.mean(axis=2) >= TAILS[1]))
        return float(np.median(found))

    return power


def information(law: Callable[[Vector], Vector], at: Vector, steps: Vector, channel: Vector) -> Vector:
    """Return the information of one report on the arguments of a law, (cells, arguments, arguments).

    It is the sum, over reports, of products of their probability's slopes, divided by that probability.

    Args:
        law: arguments (cells, arguments) -> probabilities of answers (cells, answers).
        at: the arguments at the truth.
        steps: (arguments,), small changes of each.
        channel: P(report | answer), (answers, reports), or (cells, answers, reports).
    """
    moved = [law(at + step) - law(at - step) for step in np.diag(steps)]
    slopes = np.stack(moved, axis=1) @ channel / (2 * steps[:, None])
    chances = law(at)[:, None] @ channel
    return np.asarray((slopes / np.maximum(chances, 1e-300)) @ slopes.swapaxes(1, 2))


def _number(
    question: Question, truth: Mapping[str, float], answers: Sequence[int], prior: Prior, channel: Vector
) -> dict[str, Vector]:
    names = list(truth)
    sds = np.asarray([prior.half_widths[name] for name in names]) / HALF

    def law(points: Vector) -> Vector:
        return _masses(question, names, points)

    at = np.asarray([[truth[name] for name in names]])
    own = information(law, at, STEP * sds, channel)[0]
    widths = [HALF * np.sqrt(np.diag(np.linalg.inv(n * own + np.diag(1 / sds**2)))) for n in answers]
    return dict(zip(names, np.stack(widths, axis=-1), strict=True))


def _answers(question: Question) -> Vector:
    """Return answers from bound to bound, in own units: for a law on the whole numbers its numbers."""
    low, width = number_units(question)
    whole = question.model.name in WHOLE and width < PLACES
    return np.linspace(low, low + width, round(width) + 1 if whole else PLACES)


def number_channel(question: Question, answers: Vector) -> Vector:
    """Return the probabilities of a report in each cell of a summary, given answers: (answers, cells)."""
    mechanism = cast("Laplace | Gaussian", mechanism_for(question))
    low, width = number_units(question)
    edges = histogram_edges(mechanism.levels, REACH[mechanism.name])
    answers = mechanism.levels * (answers - low) / width
    below = NOISE[mechanism.name]((edges - answers[:, None]) / mechanism.scale)
    ends = np.zeros((len(answers), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


def _masses(question: Question, names: Sequence[str], points: Vector) -> Vector:
    """Return (points, answers): the shares of answers at each place, answers beyond a bound at the bound."""
    truth = dict(zip(names, points.T[:, :, None], strict=True))
    return masses(lambda values: _below(question, truth, values), _answers(question))


def masses(below: Callable[[Vector], Vector], answers: Vector) -> Vector:
    """Return the shares of clipped numbers nearest to each answer, given those below values, (…, answers)."""
    inside = below((answers[1:] + answers[:-1]) / 2)
    ends = np.zeros((*inside.shape[:-1], 1))
    return np.diff(np.concatenate([ends, inside, ends + 1], axis=-1), axis=-1)


def _below(question: Question, truth: Mapping[str, Any], values: Any) -> Any:
    """Return the shares of answers below values in own units."""
    if question.model.name == "beta":
        low, width = number_units(question)
        values = (values - low) / width
    return CDFS[question.model.name](values, **truth)


def share_beyond_bounds(question: Question, truth: Mapping[str, float]) -> float:
    """Return the share of a number's answers that devices clip."""
    low, width = number_units(question)
    return float(_below(question, truth, low - 1e-9) + 1 - _below(question, truth, low + width))
