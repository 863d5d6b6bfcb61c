"""Priors of an analysis: weakly informative unless stated, and "flat" on request."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, constraints

from inference.default_priors import floats
from inference.priors.laws import Stated, decimals, state
from ldp_client.documents.errors import InputError
from ldp_client.documents.fields import Constant
from ldp_client.documents.shapes import ListOf, Record
from schemas.priors import ANY, EACH_POSITIVE, POSITIVE_DECIMAL, taking

FLAT = "flat"
FLAT_PRIOR: Stated = state(FLAT)
# The prior sd of effects by group, on the logit scale.
VARYING_SCALE = 1.0
MOST_WEIGHTS = 1000

# A logistic prior of loc 0 and scale 1 on a log odds makes the share itself uniform.
_LOGISTIC = Record({"distribution": Constant("logistic"), "loc": ANY, "scale": POSITIVE_DECIMAL})
_EACH = Record(
    {
        "distribution": Constant("dirichlet"),
        "concentration": ListOf(POSITIVE_DECIMAL, 2, MOST_WEIGHTS, repeats=True),
    }
)
KINDS: Mapping[str, Any] = {
    "real": taking("any number", "normal", "student_t", logistic=_LOGISTIC),
    "positive": EACH_POSITIVE.item,
    "share": taking("a share", "beta"),
    "weights": taking("a list of weights", dirichlet=_EACH),
}


def _invalid(name: str, problem: str, code: str = "") -> InputError:
    return InputError(f"the prior of {name} {problem}", code=code or "prior.invalid")


class Given:
    """Stated priors, by parameter; "flat" alone applies to all coefficients.

    Every stated name must be asked for. Others are rejected as mistakes.
    """

    def __init__(self, priors: Mapping[str, Any] | str | None) -> None:
        if priors is not None and priors != FLAT and not isinstance(priors, Mapping):
            raise InputError('priors must be "flat" or {parameter: distribution}', code="prior.wrong_form")
        self._all = priors if priors == FLAT else None
        self._priors: Mapping[str, Any] = priors if isinstance(priors, Mapping) else {}
        self._asked: list[str] = []

    def of(self, names: Sequence[str], default: Stated, kind: str = "real") -> tuple[Stated, bool]:
        """Return the prior of the parameter with these names, narrowest first, and whether it was stated.

        Raises InputError for a prior that the kind of parameter cannot have.
        """
        self._asked += names
        name = next((name for name in names if name in self._priors), None)
        given = self._all if name is None else self._priors[name]
        if given == FLAT and kind == "real":
            return FLAT_PRIOR, True
        if name is None:
            return default, False
        found: Stated = floats(KINDS[kind].read(decimals(given), name, _invalid))
        count = len(default.get("concentration", ()))
        if count and len(found["concentration"]) != count:
            raise _invalid(f"{name}.concentration", f"must have {count} numbers, one for each weight")
        return found, True

    def refuse_others(self) -> None:
        """Raise InputError for a prior of a parameter that the analysis does not have."""
        unknown = [name for name in self._priors if name not in self._asked]
        if unknown:
            known = ", ".join(dict.fromkeys(self._asked)) or "none"
            raise InputError(
                f"there is no parameter {unknown[0]!r} for a prior: there are {known}",
                code="prior.unknown_parameter",
            )


def is_flat(prior: Stated) -> bool:
    """Return True if a prior is flat, so no draw can come from it."""
    return prior["distribution"] == FLAT


class RealPriors(Distribution):
    """Independent priors of an array's entries: normal, Student's t, logistic or flat.

    unit, shift: an entry is unit × (a number with its prior) + shift. ordered: the entries increase, as
    cutpoints do. A flat prior has log density 0, and its draws are placeholders.
    """

    def __init__(
        self,
        priors: Sequence[Stated],
        shape: tuple[int, ...],
        unit: ArrayLike = 1.0,
        shift: ArrayLike = 0.0,
        *,
        ordered: bool = False,
    ) -> None:
        def entries(name: str, default: float) -> NDArray[np.float64]:
            return np.reshape([float(one.get(name, default)) for one in priors], shape)

        self.flat = np.reshape([is_flat(one) for one in priors], shape)
        freedom = entries("degrees_of_freedom", 0.0)
        logistic = np.reshape([one["distribution"] == "logistic" for one in priors], shape)
        # Entries whose standard law is not the normal one, and that law.
        others = (
            (freedom > 0, dist.StudentT(np.where(freedom > 0, freedom, 1.0))),
            (logistic, dist.Logistic(np.zeros(shape))),
        )
        self.others = [(mask, law) for mask, law in others if mask.any()]
        self.loc = entries("loc", 0.0) * unit + shift
        self.scale = entries("scale", 1.0) * unit
        self.ordered = ordered
        super().__init__((), shape)

    @property
    def support(self) -> constraints.Constraint:
        """Return the entries' support."""
        if self.ordered:
            return constraints.ordered_vector
        return constraints.independent(constraints.real, self.event_dim)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw arrays (…, *shape)."""
        assert key is not None
        first, second = jax.random.split(key)
        drawn = jax.random.normal(first, (*sample_shape, *self.event_shape))
        for mask, law in self.others:
            drawn = jnp.where(mask, law.sample(second, sample_shape), drawn)
        found = jnp.asarray(self.loc + self.scale * drawn)
        return jnp.sort(found, axis=-1) if self.ordered else found

    def log_prob(self, value: Any) -> Array:
        """Return the log density (…)."""
        standard = (value - self.loc) / self.scale
        each = dist.Normal().log_prob(standard)
        for mask, law in self.others:
            each = jnp.where(mask, law.log_prob(standard), each)
        each = jnp.where(self.flat, 0.0, each - jnp.log(self.scale))
        total: Array = jnp.sum(each, axis=tuple(range(-self.event_dim, 0)))
        return total
