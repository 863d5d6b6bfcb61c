"""Priors of an analysis: weakly informative unless stated, and "flat" on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.priors.laws import Stated, law, state
from ldp_client.documents.errors import InputError

FLAT = "flat"
FLAT_PRIOR: Stated = state(FLAT)
# The prior sd of a coefficient times its column's sd, and of the intercept at the columns' means, on the
# logit scale: shares from 0.7 % to 99.3 % are within two sds.
LOGIT_SCALE = 2.5
# The same on the probit scale: divided by the ratio of the two densities at the middle.
PROBIT_SCALE = 1.6
VARYING_SCALE = 1.0

_REAL = {"normal": ("loc", "scale"), "student_t": ("degrees_of_freedom", "loc", "scale")}
_POSITIVE = {
    "half_normal": ("scale",),
    "log_normal": ("loc", "scale"),
    "gamma": ("shape", "rate"),
    "inverse_gamma": ("shape", "scale"),
}
_SHARE = {"beta": ("a", "b")}
KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"real": _REAL, "positive": _POSITIVE, "share": _SHARE}
_MAY_BE_NEGATIVE = ("loc",)


def stated(name: str, given: Any, kind: str = "real") -> Stated:
    """Check a stated prior: "flat", or {"distribution": …}. Raises InputError for any other."""
    if given == FLAT and kind == "real":
        return FLAT_PRIOR
    laws = KINDS[kind]
    flat = f'"{FLAT}" or ' if kind == "real" else ""
    if not isinstance(given, Mapping) or given.get("distribution") not in laws:
        raise InputError(
            f"the prior of {name} must be {flat}one of the distributions {', '.join(laws)}",
            code="prior.unknown_distribution",
        )
    wanted = laws[given["distribution"]]
    if set(given) != {"distribution", *wanted}:
        raise InputError(
            f"the prior of {name}: {given['distribution']} needs exactly {', '.join(wanted)}",
            code="prior.wrong_fields",
        )
    return state(given["distribution"], **{key: _number(name, key, given[key]) for key in wanted})


def _number(name: str, key: str, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number) or (number <= 0 and key not in _MAY_BE_NEGATIVE):
        raise InputError(
            f"the prior of {name}: {key} must be a {'' if key == 'loc' else 'positive '}number",
            code="prior.value_not_number",
        )
    return number


class Given:
    """Stated priors, by parameter; "flat" alone applies to all coefficients.

    Every stated name must be asked for. Others are rejected as mistakes.
    """

    def __init__(self, priors: Mapping[str, Any] | str | None) -> None:
        if priors is not None and priors != FLAT and not isinstance(priors, Mapping):
            raise InputError('priors must be "flat" or {parameter: distribution}', code="prior.wrong_form")
        self._all_flat = priors == FLAT
        self._priors: Mapping[str, Any] = priors if isinstance(priors, Mapping) else {}
        self._asked: list[str] = []
        # {stated name: True if it was a parameter's first (own) name, False if a wider one}.
        self._taken: dict[str, set[bool]] = {}

    def of(self, names: Sequence[str], default: Stated, kind: str = "real") -> tuple[Stated, bool]:
        """Return the prior of the parameter with these names, narrowest first, and whether it was stated."""
        self._asked += names
        for name in names:
            if name in self._priors:
                self._taken.setdefault(name, set()).add(name == names[0])
                return stated(name, self._priors[name], kind), True
        return (FLAT_PRIOR, True) if self._all_flat and kind == "real" else (default, False)

    def refuse_others(self) -> None:
        """Raise InputError for a prior of a parameter that the analysis does not have."""
        unknown = [name for name in self._priors if name not in self._asked]
        if unknown:
            known = ", ".join(dict.fromkeys(self._asked))
            raise InputError(
                f"there is no parameter {unknown[0]!r} for a prior: there are {known}",
                code="prior.unknown_parameter",
            )

    def refuse_two_readings(self) -> None:
        """Raise InputError for a prior whose name means one parameter, but also several together."""
        both = [name for name, own in self._taken.items() if len(own) > 1]
        if both:
            raise InputError(
                f"the prior of {both[0]} is ambiguous: one parameter, or a whole level. Rename a label.",
                code="prior.ambiguous_name",
            )


def is_flat(prior: Stated) -> bool:
    """Return True if a prior is flat, so no draw can come from it."""
    return prior["distribution"] == FLAT


def log_density(priors: Sequence[Stated], values: Array) -> Array:
    """Return the log density of values (entries,), omitting flat priors; vectorised by family."""
    found = jnp.zeros(())
    for family in dict.fromkeys(one["distribution"] for one in priors if not is_flat(one)):
        places = [place for place, one in enumerate(priors) if one["distribution"] == family]
        together = {
            key: np.asarray([priors[place][key] for place in places])
            for key in priors[places[0]]
            if key != "distribution"
        }
        found += jnp.sum(law(state(family, **together)).log_prob(values[np.asarray(places)]))
    return found


def draws_from(prior: Stated, count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return draws (count,) from a prior that is not flat."""
    key = jax.random.key(int(random.integers(1 << 31)))
    return np.asarray(law(prior).sample(key, (count,)), np.float64)
