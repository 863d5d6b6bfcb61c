"""Laws of an outcome: private or public choices, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from scipy import stats

from inference.analyses.linear import Scales
from inference.analyses.parameter_names import Parameter
from inference.analyses.stated_priors import LOGIT_SCALE, PROBIT_SCALE, Given, RealPriors
from inference.analyses.table import Values
from inference.likelihoods.numbers.discrete import MOST_POINTS
from inference.models.base import Draws
from inference.priors.laws import Stated, law, state
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from inference.analyses.private_numbers import NumberChannel

# Times the distance of the bounds: the scale of a private number's default priors.
WIDE = 0.625


@dataclass(frozen=True)
class Own:
    """A parameter of the law itself, besides the linear predictor.

    prior: its default. kind: the values it may have. start: the chains' start.
    """

    name: str
    prior: Stated
    kind: str = "positive"
    start: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """An outcome's law.

    name: the family. link: a description. answers: of a choice, () for a number. outputs: labels of the
    linear predictors. scales: of default priors. own: further parameters. start: of the linear predictor.
    """

    name: str
    answers: tuple[str, ...]
    outputs: tuple[str, ...]
    scales: Scales
    own: tuple[Own, ...] = ()
    start: Values = field(default_factory=lambda: np.zeros(1))

    @property
    def cutpoints(self) -> int:
        """Return the number of cutpoints that replace an intercept."""
        return len(self.answers) - 1 if self.name == "ordered" else 0

    @property
    def odds(self) -> bool:
        """Return True if exp(coefficient) is an odds ratio."""
        return self.name in ("logit", "softmax", "ordered")

    def log_law(self, eta: Array, own: Mapping[str, Array]) -> Array:
        """Return log P(choice) (…, choices), from linear predictors (…, outputs)."""
        return _CHOICES[self.name](eta, own)

    @property
    def log_link(self) -> bool:
        """Return True if the mean of a number is exp(η)."""
        return self.name in LOG_LINKS

    def law_of(self, eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
        """Return the law of a number at linear predictors (…, 1): batch (…)."""
        return _NUMBERS[self.name](eta[..., 0], own)

    def below(self, cuts: Values, eta: Values, own: Mapping[str, Values]) -> Values:
        """Return P(a number ≤ cut), for arrays that broadcast."""
        return np.asarray(_BELOW[self.name](cuts, eta, own), np.float64)


def _logit(eta: Array, own: Mapping[str, Array]) -> Array:
    del own
    return jnp.concatenate([jax.nn.log_sigmoid(-eta), jax.nn.log_sigmoid(eta)], axis=-1)


def _probit(eta: Array, own: Mapping[str, Array]) -> Array:
    del own
    return jnp.concatenate([jax.scipy.stats.norm.logcdf(-eta), jax.scipy.stats.norm.logcdf(eta)], axis=-1)


def _softmax(eta: Array, own: Mapping[str, Array]) -> Array:
    del own
    return jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(eta[..., :1]), eta], axis=-1), axis=-1)


def _ordered(eta: Array, own: Mapping[str, Array]) -> Array:
    """P(choice ≤ j) = logistic(threshold j − η); differences of neighbours without cancelling."""
    upper = own["threshold"] - eta
    first, last = jax.nn.log_sigmoid(upper[..., :1]), jax.nn.log_sigmoid(-upper[..., -1:])
    high, low = upper[..., 1:], upper[..., :-1]
    # σ(h) − σ(l) = σ(h) σ(−l) (1 − exp(l − h)).
    between = jax.nn.log_sigmoid(high) + jax.nn.log_sigmoid(-low) + jnp.log(-jnp.expm1(low - high))
    return jnp.concatenate([first, between, last], axis=-1)


def _normal(eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
    return dist.Normal(eta, own["sigma"])


def _student(eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
    return dist.StudentT(own["nu"], eta, own["sigma"])


def _exponential(eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
    del own
    return dist.Exponential(jnp.exp(-eta))


def _poisson(eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
    del own
    return dist.Poisson(jnp.exp(eta))


def _negative_binomial(eta: Array, own: Mapping[str, Array]) -> dist.Distribution:
    return dist.NegativeBinomial2(jnp.exp(eta), own["alpha"])


_CHOICES: Mapping[str, Any] = {"logit": _logit, "probit": _probit, "softmax": _softmax, "ordered": _ordered}
_NUMBERS: Mapping[str, Any] = {
    "normal": _normal,
    "student_t": _student,
    "exponential": _exponential,
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
}
_BELOW: Mapping[str, Any] = {
    "normal": lambda cuts, eta, own: stats.norm.cdf(cuts, eta, own["sigma"]),
    "student_t": lambda cuts, eta, own: stats.t.cdf(cuts, own["nu"], eta, own["sigma"]),
    "exponential": lambda cuts, eta, _own: stats.expon.cdf(cuts, 0, np.exp(eta)),
    "poisson": lambda cuts, eta, _own: stats.poisson.cdf(cuts, np.exp(eta)),
    "negative_binomial": lambda cuts, eta, own: stats.nbinom.cdf(
        cuts, own["alpha"], own["alpha"] / (own["alpha"] + np.exp(eta))
    ),
}
FAMILIES = (*_CHOICES, *_NUMBERS)
LOG_LINKS = ("exponential", "poisson", "negative_binomial")
WHOLE = ("poisson", "negative_binomial")
# Families of a private number: their clipped and perturbed law has a closed form, or is a finite sum.
OF_PRIVATE_NUMBERS = ("normal", "exponential", "poisson", "negative_binomial")


def choice_outcome(answers: Sequence[str], ordered: bool, family: str | None) -> Outcome:
    """Return the law of a choice: logit for two answers, softmax for more, or ordered if they have an order.

    Raises InputError for a family that does not fit.
    """
    usual = "logit" if len(answers) == 2 else "ordered" if ordered else "softmax"
    name = family or usual
    fitting = ("logit", "probit") if len(answers) == 2 else ("softmax", "ordered")
    if name not in fitting:
        raise InputError(
            f"the family {name!r} does not fit an outcome with {len(answers)} answers: "
            f"use {' or '.join(fitting)}",
            code="fit.family_not_for_choice",
        )
    scale = PROBIT_SCALE if name == "probit" else LOGIT_SCALE
    outputs = tuple(answers[1:]) if name == "softmax" else ("",)
    own = (
        (Own("threshold", state("normal", loc=0.0, scale=LOGIT_SCALE), "real"),) if name == "ordered" else ()
    )
    return Outcome(name, tuple(answers), outputs, Scales(scale, scale), own, np.zeros(len(outputs)))


def number_outcome(name: str, values: Values, counts: Values, family: str | None) -> Outcome:
    """Return the law of a public number, whose default priors have the unit of the values.

    Raises InputError for a family that does not fit, or for values that the family cannot have.
    """
    law_name = family or "normal"
    if law_name not in _NUMBERS:
        raise InputError(
            f"the family {law_name!r} does not fit the numbers of {name}: use {', '.join(_NUMBERS)}",
            code="fit.family_not_for_number",
        )
    mean = float(np.average(values, weights=counts))
    sd = float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    if sd == 0:
        raise InputError(
            f"{name} is the same in every row: there is nothing to explain", code="fit.constant_outcome"
        )
    if law_name in WHOLE and ((values < 0).any() or (values != np.floor(values)).any()):
        raise InputError(
            f"{name} must be whole numbers from 0 on for the family {law_name!r}",
            code="fit.outcome_not_counts",
        )
    if law_name in LOG_LINKS and (values < 0).any():
        raise InputError(
            f"{name} must be numbers from 0 on for the family {law_name!r}", code="fit.outcome_negative"
        )
    return _number_law(law_name, mean, sd, LOGIT_SCALE * sd)


def private_number_outcome(name: str, channel: NumberChannel, family: str | None) -> Outcome:
    """Return the law of a private number before clipping, whose default priors have the unit of its bounds.

    Raises InputError for a family that does not fit, or bounds outside the family's range.
    """
    law_name = family or "normal"
    if law_name not in OF_PRIVATE_NUMBERS:
        raise InputError(
            f"the family {law_name!r} does not fit the private number {name}: "
            f"use {', '.join(OF_PRIVATE_NUMBERS)}",
            code="fit.family_not_for_private_number",
        )
    if law_name in LOG_LINKS and channel.high <= 0:
        raise InputError(
            f"{law_name!r} is a law of positive numbers, but the bounds of {name} contain none",
            code="fit.bounds_without_positive_numbers",
        )
    if law_name in WHOLE and channel.high - min(channel.low, 0.0) > MOST_POINTS:
        raise InputError(
            f"{name}: a law of whole numbers needs bounds at most {MOST_POINTS} apart and from 0",
            code="fit.bounds_unfit_for_counts",
        )
    found = _number_law(law_name, (channel.low + channel.high) / 2, channel.sd, WIDE * channel.width)
    start = np.log(max(channel.mean, channel.width / 100)) if found.log_link else channel.mean
    return replace(found, start=np.asarray([start]))


def _number_law(name: str, mean: float, sd: float, wide: float) -> Outcome:
    """Return a number's law around a mean, with priors of scale `wide` if its mean is η itself."""
    if name in LOG_LINKS:
        middle = float(np.log(max(mean, 1e-3)))
        own = (Own("alpha", state("gamma", shape=2.0, rate=0.1), start=1.0),) if name == WHOLE[1] else ()
        return Outcome(name, (), ("",), Scales(LOGIT_SCALE, LOGIT_SCALE, middle), own, np.asarray([middle]))
    further = [Own("sigma", state("half_normal", scale=wide), start=sd)]
    if name == "student_t":
        further.append(Own("nu", state("gamma", shape=2.0, rate=0.1), start=10.0))
    return Outcome(name, (), ("",), Scales(wide, wide, mean), tuple(further), np.asarray([mean]))


class OwnParameters:
    """The law's own parameters, in a program and as named draws."""

    def __init__(self, outcome: Outcome, given: Given) -> None:
        self.outcome = outcome
        self.priors = {one.name: given.of([one.name], one.prior, one.kind)[0] for one in outcome.own}

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
        return {one.name: one.start for one in self.outcome.own}

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return the law's own parameters: cutpoints by their lower answer."""
        if not self.outcome.cutpoints:
            return [Parameter(one.name, {}, self.priors[one.name]) for one in self.outcome.own]
        answers, prior = self.outcome.answers[:-1], self.priors["threshold"]
        return [Parameter("threshold", {"threshold_dim": one}, prior) for one in answers]

    def values(self, draws: Draws, shift: Values) -> Values:
        """Return draws of the entries, (…, entries). shift (…): what centring the columns removed from η."""
        if self.outcome.cutpoints:
            return np.asarray(draws["threshold"] + shift[..., None])
        return np.stack([draws[one.name] for one in self.outcome.own], axis=-1)
