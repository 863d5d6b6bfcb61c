"""What an outcome's law may be: of private or public choices, and of public numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from scipy import stats

from inference.analyses.linear import Scales
from inference.analyses.naming import Axis, Parameters, axis_of, named
from inference.analyses.stated_priors import LOGIT_SCALE, PROBIT_SCALE, Given
from inference.analyses.table import Values
from inference.models.base import Draws
from inference.priors.laws import Stated, law, state
from ldp_client.documents.errors import InputError


@dataclass(frozen=True)
class Own:
    """A parameter of the law itself, beside the linear predictor: what it may be, and its default prior."""

    name: str
    prior: Stated
    kind: str = "positive"


@dataclass(frozen=True)
class Outcome:
    """An outcome's law.

    name: of the family. link: for people. answers: of a choice, () for a number. outputs: labels of the
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
        """How many cutpoints stand in place of an intercept."""
        return len(self.answers) - 1 if self.name == "ordered" else 0

    @property
    def odds(self) -> bool:
        """Whether exp(coefficient) is an odds ratio."""
        return self.name in ("logit", "softmax", "ordered")

    def log_law(self, eta: Array, own: Mapping[str, Array]) -> Array:
        """log P(choice) of linear predictors (…, outputs): (…, choices)."""
        return _CHOICES[self.name](eta, own)

    def log_density(self, value: Array, eta: Array, own: Mapping[str, Array]) -> Array:
        """Of a number, at linear predictors (…, 1): (…)."""
        return _NUMBERS[self.name](value, eta[..., 0], own)

    def below(self, cuts: Values, eta: Values, own: Mapping[str, Values]) -> Values:
        """P(a number ≤ cut), of arrays that broadcast."""
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


def _normal(value: Array, eta: Array, own: Mapping[str, Array]) -> Array:
    return dist.Normal(eta, own["sigma"]).log_prob(value)


def _student(value: Array, eta: Array, own: Mapping[str, Array]) -> Array:
    return dist.StudentT(own["nu"], eta, own["sigma"]).log_prob(value)


def _poisson(value: Array, eta: Array, own: Mapping[str, Array]) -> Array:
    del own
    return value * eta - jnp.exp(eta) - jax.scipy.special.gammaln(value + 1)


def _negative_binomial(value: Array, eta: Array, own: Mapping[str, Array]) -> Array:
    return dist.NegativeBinomial2(jnp.exp(eta), own["alpha"]).log_prob(value)


_CHOICES: Mapping[str, Any] = {"logit": _logit, "probit": _probit, "softmax": _softmax, "ordered": _ordered}
_NUMBERS: Mapping[str, Any] = {
    "normal": _normal,
    "student_t": _student,
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
}
_BELOW: Mapping[str, Any] = {
    "normal": lambda cuts, eta, own: stats.norm.cdf(cuts, eta, own["sigma"]),
    "student_t": lambda cuts, eta, own: stats.t.cdf(cuts, own["nu"], eta, own["sigma"]),
    "poisson": lambda cuts, eta, _own: stats.poisson.cdf(cuts, np.exp(eta)),
    "negative_binomial": lambda cuts, eta, own: stats.nbinom.cdf(
        cuts, own["alpha"], own["alpha"] / (own["alpha"] + np.exp(eta))
    ),
}
FAMILIES = (*_CHOICES, *_NUMBERS)


def choice_outcome(answers: Sequence[str], ordered: bool, family: str | None) -> Outcome:
    """The law of a choice: logit of two answers, softmax of more, or ordered where they have an order.

    Raises InputError for a family that does not fit.
    """
    usual = "logit" if len(answers) == 2 else "ordered" if ordered else "softmax"
    name = family or usual
    fitting = ("logit", "probit") if len(answers) == 2 else ("softmax", "ordered")
    if name not in fitting:
        raise InputError(
            f"the family {name!r} does not fit an outcome with {len(answers)} answers: "
            f"{' or '.join(fitting)} does"
        )
    scale = PROBIT_SCALE if name == "probit" else LOGIT_SCALE
    outputs = tuple(answers[1:]) if name == "softmax" else ("",)
    own = (
        (Own("threshold", state("normal", loc=0.0, scale=LOGIT_SCALE), "real"),) if name == "ordered" else ()
    )
    return Outcome(name, tuple(answers), outputs, Scales(scale, scale), own, np.zeros(len(outputs)))


def number_outcome(name: str, values: Values, counts: Values, family: str | None) -> Outcome:
    """The law of a public number, whose default priors have the unit of the values.

    Raises InputError for a family that does not fit, or values that it cannot have.
    """
    law_name = family or "normal"
    if law_name not in _NUMBERS:
        raise InputError(
            f"the family {law_name!r} does not fit the numbers of {name}: {', '.join(_NUMBERS)} do"
        )
    mean = float(np.average(values, weights=counts))
    sd = float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    if sd == 0:
        raise InputError(f"{name} is the same in every row: nothing depends on anything")
    if law_name in ("poisson", "negative_binomial"):
        if (values < 0).any() or (values != np.floor(values)).any():
            raise InputError(f"{name} must be whole numbers from 0 on for the family {law_name!r}")
        middle = float(np.log(max(mean, 1e-3)))
        own = (Own("alpha", state("gamma", shape=2.0, rate=0.1)),) if law_name != "poisson" else ()
        return Outcome(
            law_name, (), ("",), Scales(LOGIT_SCALE, LOGIT_SCALE, middle), own, np.asarray([middle])
        )
    scales = Scales(LOGIT_SCALE * sd, LOGIT_SCALE * sd, mean)
    further = [Own("sigma", state("half_normal", scale=LOGIT_SCALE * sd))]
    if law_name == "student_t":
        further.append(Own("nu", state("gamma", shape=2.0, rate=0.1)))
    return Outcome(law_name, (), ("",), scales, tuple(further), np.asarray([mean]))


class OwnParameters:
    """The law's own parameters in a program, and for people."""

    def __init__(self, outcome: Outcome, given: Given) -> None:
        self.outcome = outcome
        self.priors = {one.name: given.of([one.name], one.prior, one.kind)[0] for one in outcome.own}

    def draw(self) -> dict[str, Array]:
        """Inside a NumPyro program."""
        found = {}
        for one in self.outcome.own:
            if self.outcome.cutpoints:
                found[one.name] = self._thresholds(one)
            else:
                found[one.name] = numpyro.sample(one.name, law(self.priors[one.name]))
        return found

    def _thresholds(self, one: Own) -> Array:
        ordered = dist.ImproperUniform(dist.constraints.ordered_vector, (), (self.outcome.cutpoints,))
        found = numpyro.sample(one.name, ordered)
        prior = self.priors[one.name]
        if prior["distribution"] != "flat":
            numpyro.factor("threshold_prior", jnp.sum(law(prior).log_prob(found)))
        return found

    def initial(self) -> dict[str, object]:
        """Where to start."""
        if self.outcome.cutpoints:
            return {"threshold": np.linspace(-1.0, 1.0, self.outcome.cutpoints + 2)[1:-1]}
        spread = self.outcome.scales.intercept / LOGIT_SCALE
        starts = {"sigma": spread, "nu": 10.0, "alpha": 1.0}
        return {one.name: starts[one.name] for one in self.outcome.own}

    def parameters(self, draws: Draws, shift: Values) -> Parameters:
        """{name: draws}; shift (…): what centring the columns took from η."""
        if not self.outcome.cutpoints:
            return {one.name: draws[one.name] for one in self.outcome.own}
        return {
            named("threshold", answer): draws["threshold"][..., place] + shift
            for place, answer in enumerate(self.outcome.answers[:-1])
        }

    def axes(self) -> dict[str, Axis]:
        """{name: where it stands}."""
        if not self.outcome.cutpoints:
            return {}
        answers = self.outcome.answers[:-1]
        return {named("threshold", one): axis_of("threshold", {"threshold_dim": one}) for one in answers}
