"""The distributions that priors may have: from a stated prior to NumPyro, and between units.

A `Stated` is a prior as in a document, {"distribution": name, parameter: value …}, with numbers (or arrays
of them) instead of decimals. schemas/priors.py explains the names.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpy.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.default_priors import Stated, state
from ldp_client.documents.errors import StudyError
from schemas import Question
from schemas.models import MODELS
from schemas.priors import check_prior, given_priors

__all__ = ["Stated", "law", "rescaled", "state", "vector_law", "with_priors"]

# Zero z and unit u of a parameter where x = zero + unit × y: the parameter of x is z + u × that of y.
Measure = Callable[[Any, Any], tuple[Any, Any]]
PLAIN: Measure = lambda _zero, _unit: (0.0, 1.0)  # noqa: E731
PLACE: Measure = lambda zero, unit: (zero, unit)  # noqa: E731
LENGTH: Measure = lambda _zero, unit: (0.0, unit)  # noqa: E731
RATE: Measure = lambda _zero, unit: (0.0, 1 / unit)  # noqa: E731
LOGARITHM: Measure = lambda _zero, unit: (np.log(unit), 1.0)  # noqa: E731


def _beta(a: Any, b: Any) -> Distribution:
    """Return Beta(a, b); a uniform law, which is drawn by a much smaller program, if it is one."""
    return dist.Uniform() if a == b == 1 else dist.Beta(a, b)


# {name: (law of its parameters in this order, {parameter: its measure})}
_LAWS: dict[str, tuple[Callable[..., Distribution], dict[str, Measure]]] = {
    "normal": (dist.Normal, {"loc": PLACE, "scale": LENGTH}),
    "student_t": (dist.StudentT, {"degrees_of_freedom": PLAIN, "loc": PLACE, "scale": LENGTH}),
    "half_normal": (dist.HalfNormal, {"scale": LENGTH}),
    "log_normal": (dist.LogNormal, {"loc": LOGARITHM, "scale": PLAIN}),
    "gamma": (dist.Gamma, {"shape": PLAIN, "rate": RATE}),
    "inverse_gamma": (dist.InverseGamma, {"shape": PLAIN, "scale": LENGTH}),
    "uniform": (dist.Uniform, {"low": PLACE, "high": PLACE}),
    "beta": (_beta, {"a": PLAIN, "b": PLAIN}),
}


def rescaled(stated: Stated, zero: ArrayLike, unit: ArrayLike) -> Stated:
    """Return the law of y, if x = zero + unit × y has the stated law."""
    measures = _LAWS[stated["distribution"]][1]
    scales = {name: measure(np.asarray(zero), np.asarray(unit)) for name, measure in measures.items()}
    changed = {name: (np.asarray(stated[name]) - z) / u for name, (z, u) in scales.items()}
    return {"distribution": stated["distribution"], **changed}


def law(stated: Stated) -> Distribution:
    """Return the NumPyro distribution of one number."""
    build, names = _LAWS[stated["distribution"]]
    return build(*(stated[name] for name in names))


def vector_law(stated: Sequence[Stated], zero: ArrayLike, unit: ArrayLike) -> Distribution:
    """Return the law of a vector of independent entries, stated in own units. zero, unit: (entries,)."""
    entries = [
        rescaled(one, origin, length)
        for one, origin, length in zip(stated, np.asarray(zero), np.asarray(unit), strict=True)
    ]
    if len({entry["distribution"] for entry in entries}) > 1:
        return Each([law(entry) for entry in entries])
    build, names = _LAWS[entries[0]["distribution"]]
    return build(*(np.asarray([float(entry[name]) for entry in entries]) for name in names)).to_event(1)


class Each(Distribution):
    """Independent entries of a vector, of different families with one support: (entries,)."""

    pytree_data_fields = ("laws",)

    def __init__(self, laws: Sequence[Distribution]) -> None:
        self.laws = list(laws)
        super().__init__((), (len(self.laws),))

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(self.laws[0].support, 1)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        keys = jax.random.split(key, len(self.laws))
        draws = [one.sample(part, sample_shape) for one, part in zip(self.laws, keys, strict=True)]
        return jnp.stack(draws, axis=-1)

    def log_prob(self, value: Any) -> Array:
        entries = [one.log_prob(value[..., index]) for index, one in enumerate(self.laws)]
        return jnp.sum(jnp.stack(entries, axis=-1), axis=-1)


def with_priors(question: Question, priors: Mapping[str, Any]) -> Question:
    """Return the question with these priors instead of the study's priors.

    priors: {parameter: {"distribution": name, …}} as in a study, but numbers may replace decimals.
    Raises StudyError that names the fault.
    """
    stated = {"name": question.model.name, "prior": decimals(priors)}
    parsed = MODELS[question.model.name].shape.read(stated, "model", StudyError)
    shown = {
        "model": parsed,
        "choices": question.choices,
        "features": [vars(field) for field in question.features],
        "response": vars(question.response) if question.response else None,
    }
    check_prior(shown, question.id)
    changed = copy(question)
    changed.model = copy(question.model)
    changed.model.prior = {**question.model.prior, **given_priors(parsed)}
    return changed


def decimals(value: Any) -> Any:
    """Return a stated prior with decimals, as in a study, in place of numbers."""
    if isinstance(value, Mapping):
        return {name: decimals(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [decimals(entry) for entry in value]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if number else value
