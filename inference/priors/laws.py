"""The distributions that priors may have: from a stated prior to NumPyro, and between units.

A `Stated` is a prior as in a document, {"distribution": name, parameter: value …}, with numbers (or arrays
of them) instead of decimals. schemas/priors.py explains the names.
"""

from __future__ import annotations

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

Change = Callable[[Any, Any, Any], Any]

# How a parameter changes if x = zero + unit × y is written in y: value, zero, unit -> value.
_PLAIN: Change = lambda value, *_: value  # noqa: E731
_PLACE: Change = lambda value, zero, unit: (value - zero) / unit  # noqa: E731
_LENGTH: Change = lambda value, _, unit: value / unit  # noqa: E731
_RATE: Change = lambda value, _, unit: value * unit  # noqa: E731
_LOGARITHM: Change = lambda value, _, unit: value - np.log(unit)  # noqa: E731


def _beta(a: Any, b: Any) -> Distribution:
    """Return Beta(a, b); a uniform law, which is drawn by a much smaller program, if it is one."""
    return dist.Uniform() if a == b == 1 else dist.Beta(a, b)


# {name: (law of its parameters in this order, {parameter: its change})}
_LAWS: dict[str, tuple[Callable[..., Distribution], dict[str, Change]]] = {
    "normal": (dist.Normal, {"loc": _PLACE, "scale": _LENGTH}),
    "student_t": (dist.StudentT, {"degrees_of_freedom": _PLAIN, "loc": _PLACE, "scale": _LENGTH}),
    "half_normal": (dist.HalfNormal, {"scale": _LENGTH}),
    "log_normal": (dist.LogNormal, {"loc": _LOGARITHM, "scale": _PLAIN}),
    "gamma": (dist.Gamma, {"shape": _PLAIN, "rate": _RATE}),
    "inverse_gamma": (dist.InverseGamma, {"shape": _PLAIN, "scale": _LENGTH}),
    "uniform": (dist.Uniform, {"low": _PLACE, "high": _PLACE}),
    "beta": (_beta, {"a": _PLAIN, "b": _PLAIN}),
}


def rescaled(stated: Stated, zero: ArrayLike, unit: ArrayLike) -> Stated:
    """Return the law of y, if x = zero + unit × y has the stated law."""
    changes = _LAWS[stated["distribution"]][1]
    changed = {name: change(np.asarray(stated[name]), zero, unit) for name, change in changes.items()}
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

    def __init__(self, laws: Sequence[Distribution], *, validate_args: bool | None = None) -> None:
        self.laws = list(laws)
        super().__init__((), (len(self.laws),), validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(self.laws[0].support, 1)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        keys = jax.random.split(key, len(self.laws))
        draws = [one.sample(part, sample_shape) for one, part in zip(self.laws, keys, strict=True)]
        return jnp.stack(draws, axis=-1)

    def log_prob(self, value: Any, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        entries = [one.log_prob(value[..., index]) for index, one in enumerate(self.laws)]
        return jnp.sum(jnp.stack(entries, axis=-1), axis=-1)


def with_priors(question: Question, priors: Mapping[str, Any]) -> Question:
    """Return the question with these priors instead of the study's priors.

    priors: {parameter: {"distribution": name, …}} as in a study, but numbers may replace decimals.
    Raises StudyError that names the fault.
    """
    stated = {"name": question.model.name, "prior": _decimals(priors)}
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


def _decimals(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _decimals(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_decimals(entry) for entry in value]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if number else value
