"""Parameters that are no linear predictor's: of an outcome's family, and shares that a design leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpyro
from jax import Array

from inference.analyses.formula import Parameter
from inference.analyses.linear import Linear
from inference.analyses.stated_priors import Given, RealPriors
from inference.analyses.table import Private, Values
from inference.default_priors import LOGIT_SCALE, NUMBER_SCALE
from inference.laws import CHOICES, LAWS, NUMBERS, OutcomeLaw
from inference.likelihoods.numbers.clipped import MOST_POINTS
from inference.models.base import Draws
from inference.priors.laws import Stated, law, state
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from inference.analyses.private_columns import NumberChannel


@dataclass(frozen=True)
class Outcome:
    """An outcome's law.

    name: the family. answers: of a choice, () for a number. scale: the sd of default priors, of the intercept
    at the middle and of a coefficient times its unit. loc: of the intercept's prior, where chains start. own:
    {further parameter: (its default prior, its start)}.
    """

    name: str
    answers: tuple[str, ...]
    scale: float
    loc: float
    own: Mapping[str, tuple[Stated, float]]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the labels of the linear predictors: a softmax has one for each answer but the first."""
        return self.answers[1:] if self.name == "softmax" else ("",)

    @property
    def law(self) -> OutcomeLaw:
        """Return the family's law."""
        return LAWS[self.name]

    @property
    def cutpoints(self) -> int:
        """Return the number of cutpoints that replace an intercept."""
        return len(self.answers) - 1 if self.name == "ordered" else 0

    @property
    def odds(self) -> bool:
        """Return True if exp(coefficient) is an odds ratio."""
        return self.name in ("logit", "softmax", "ordered")


def choice_outcome(answers: Sequence[str], ordered: bool, family: str | None) -> Outcome:
    """Return the law of a choice: logit for two answers, softmax for more, or ordered if they have an order.

    Raises InputError for a family that does not fit.
    """
    fitting = ("logit", "probit") if len(answers) == 2 else ("softmax", "ordered")
    name = family or fitting[ordered and len(answers) > 2]
    if name not in fitting:
        raise InputError(
            f"the family {name!r} does not fit an outcome with {len(answers)} answers: "
            f"use {' or '.join(fitting)}",
            code="fit.family_not_for_choice",
        )
    return Outcome(name, tuple(answers), CHOICES[name].scale, 0.0, CHOICES[name].own)


def number_outcome(name: str, values: Values, counts: Values, family: str | None) -> Outcome:
    """Return the law of a public number, whose default priors have the unit of the values.

    Raises InputError for a family that does not fit, or for values that the family cannot have.
    """
    law_name = _fitting(name, family, list(NUMBERS), "number")
    mean = float(np.average(values, weights=counts))
    sd = float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    if sd == 0:
        raise InputError(
            f"{name} is the same in every row: there is nothing to explain", code="fit.constant_outcome"
        )
    law, whole = NUMBERS[law_name], (values == np.floor(values)).all()
    if law.log_link and ((values < 0).any() or (law.whole and not whole)):
        raise InputError(
            f"{name} must be {'whole ' if law.whole else ''}numbers from 0 on for the family {law_name!r}",
            code="fit.outcome_unfit_for_family",
        )
    return _number(law_name, mean, sd, LOGIT_SCALE * sd)


def private_number_outcome(name: str, channel: NumberChannel, family: str | None) -> Outcome:
    """Return the law of a private number before clipping, whose default priors have the unit of its bounds.

    Raises InputError for a family that does not fit, or bounds outside the family's range.
    """
    law_name = _fitting(name, family, [one for one, law in NUMBERS.items() if law.private], "private_number")
    law = NUMBERS[law_name]
    if law.log_link and channel.high <= 0:
        raise InputError(
            f"{law_name!r} is a law of positive numbers, but the bounds of {name} contain none",
            code="fit.bounds_without_positive_numbers",
        )
    if law.whole and channel.high - min(channel.low, 0.0) > MOST_POINTS:
        raise InputError(
            f"{name}: a law of whole numbers needs bounds at most {MOST_POINTS} apart and from 0",
            code="fit.bounds_unfit_for_counts",
        )
    middle, width = (channel.low + channel.high) / 2, channel.high - channel.low
    return _number(law_name, middle, width / 4, NUMBER_SCALE * width)


def _fitting(name: str, family: str | None, known: Sequence[str], kind: str) -> str:
    """Return the family, by default the normal law. Raises InputError if it does not fit."""
    if family is not None and family not in known:
        raise InputError(
            f"the family {family!r} does not fit the {kind.replace('_', ' ')} {name}: use {', '.join(known)}",
            code=f"fit.family_not_for_{kind}",
        )
    return family or "normal"


def _number(name: str, mean: float, sd: float, wide: float) -> Outcome:
    """Return a number's law around a mean, with priors of scale `wide` if its mean is η itself."""
    law = NUMBERS[name]
    if law.log_link:
        return Outcome(name, (), law.scale, float(np.log(max(mean, 1e-3))), law.own)
    return Outcome(name, (), wide, mean, {"sigma": (state("half_normal", scale=wide), sd), **law.own})


class OwnParameters:
    """The law's own parameters, in a program and as named draws. linear: the outcome's predictor."""

    def __init__(self, outcome: Outcome, given: Given, linear: Linear) -> None:
        self.outcome, self._linear = outcome, linear
        kind = "real" if outcome.cutpoints else "positive"
        self.priors = {name: given.of([name], prior, kind)[0] for name, (prior, _) in outcome.own.items()}

    def draw(self) -> dict[str, Array]:
        """Sample inside a NumPyro program."""
        count, found = self.outcome.cutpoints, {}
        for name, prior in self.priors.items():
            own = RealPriors([prior] * count, (count,), ordered=True) if count else law(prior)
            found[name] = numpyro.sample(name, own)
        return found

    def initial(self) -> dict[str, object]:
        """Return the start."""
        if self.outcome.cutpoints:
            return {"threshold": np.linspace(-1.0, 1.0, self.outcome.cutpoints + 2)[1:-1]}
        return {name: start for name, (_, start) in self.outcome.own.items()}

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return the law's own parameters: cutpoints by their lower answer."""
        if not self.outcome.cutpoints:
            return [Parameter(name, {}, prior) for name, prior in self.priors.items()]
        answers, prior = self.outcome.answers[:-1], self.priors["threshold"]
        return [Parameter("threshold", {"threshold_dim": one}, prior) for one in answers]

    def values(self, draws: Draws) -> Values:
        """Return draws of the entries, (…, entries); cutpoints, with what centring columns removed from η."""
        if self.outcome.cutpoints:
            slopes = self._linear.coefficients(draws)[..., self._linear.columns, 0]
            return np.asarray(draws["threshold"] + (slopes @ self._linear.middles)[..., None])
        return np.stack([draws[name] for name in self.outcome.own], axis=-1)


class OpenShares:
    """The unknown weights of all channels, which a priori are uniform unless a prior is stated.

    weights: of each mixture. priors: {parameter: its prior}. laws: {site: its prior}, of a Dirichlet law in
    sticks.
    """

    def __init__(self, columns: Sequence[Private], given: Given) -> None:
        self.weights = tuple(
            weights for one in columns if one.answers for weights in one.choices.weights.values()
        )
        self.priors: dict[str, Stated] = {}
        self.laws: dict[str, Stated] = {}
        for weights in self.weights:
            if weights.labels:
                usual = state("dirichlet", concentration=(1.0,) * weights.branches)
                each = given.of([weights.name], usual, "weights")[0]["concentration"]
            else:
                prior = given.of([weights.name], state("beta", a=1.0, b=1.0), "share")[0]
                each = (prior["a"], prior["b"])
            for place, site in enumerate(weights.sites):
                self.laws[site] = state("beta", a=each[place], b=sum(each[place + 1 :]))
            for place, name in enumerate(weights.names):
                others = sum((*each[:place], *each[place + 1 :]))
                self.priors[name] = state("beta", a=each[place], b=others)

    def draw(self) -> dict[str, Array]:
        """Sample inside a NumPyro program."""
        return {site: numpyro.sample(site, law(prior)) for site, prior in self.laws.items()}

    def initial(self) -> dict[str, float]:
        """Return the start: prior means, as other weights may fit with all answers turned around."""
        return {site: prior["a"] / (prior["a"] + prior["b"]) for site, prior in self.laws.items()}

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return the shares, and the weights of labelled branches."""
        return [
            Parameter(one.name, {f"{one.name}_dim": label} if label else {}, self.priors[name])
            for one in self.weights
            for name, label in zip(one.names, one.labels or ("",), strict=True)
        ]

    def values(self, draws: Draws) -> Values:
        """Return draws of the entries, (…, entries)."""
        return np.stack([value for one in self.weights for value in one.at(draws)[: len(one.names)]], axis=-1)
