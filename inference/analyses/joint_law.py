"""The law of a crossed table before any report: uniform shares of each question, log odds ratios around 0.

A table's log shares are sums of effects: of each question alone, of each two, of each three …, as in a
log-linear model with all interactions. Interactions are normal, and *given these* the shares of each question
alone are uniform, so rare answers are no evidence of dependence. If the table's own shares were uniform, the
model would take a rare combination hidden by noise for a common one, and rare answers for dependent answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution, constraints
from scipy.linalg import helmert
from scipy.special import softmax

from inference.analyses.table import Values
from inference.priors.laws import Stated, state

# The prior sd of the log odds ratio of any two answers of one question and any two of another: 90 % of
# odds ratios are from 1/27 to 27. With each further question, the sd of the effects halves.
LOG_ODDS_SCALE = 2.0
NEXT = 0.5
TINY = 1e-300
# Limits of iterative proportional fitting of prior draws to their margins. More rounds are more exact.
MOST_ROUNDS, CLOSE = 300, 1e-9


@dataclass(frozen=True)
class JointLaw:
    """The law of questions with these numbers of answers.

    Its site is `effects` (…, cells − 1), and its shares are (…, cells).
    """

    sizes: tuple[int, ...]

    @cached_property
    def basis(self) -> Values:
        """Return the orthogonal basis (cells, cells − 1) of effects, with single questions first.

        Effects of several questions are standard normal.
        """
        places, columns = range(len(self.sizes)), []
        for many in range(1, len(self.sizes) + 1):
            # A log odds ratio combines four cells, and has twice the sd of one cell's effect.
            scale = LOG_ODDS_SCALE / 2 * NEXT ** (many - 2) if many > 1 else 1.0
            for some in combinations(places, many):
                parts = [helmert(k).T if q in some else np.ones((k, 1)) for q, k in enumerate(self.sizes)]
                columns.append(scale * reduce(np.kron, parts))
        return np.concatenate(columns, axis=1)

    @cached_property
    def alone(self) -> int:
        """Return the number of effects of single questions."""
        return sum(self.sizes) - len(self.sizes)

    def shares(self, sites: Mapping[str, Any]) -> Values:
        """Return the shares (…, levels, cells) of `effects`."""
        return np.asarray(softmax(np.asarray(sites["effects"]) @ self.basis.T, axis=-1))


# The priors as a document states them.
STATED: Mapping[str, Stated] = {
    "shares of each question": state("dirichlet", concentration=1.0),
    "log odds ratio": state("normal", loc=0.0, scale=LOG_ODDS_SCALE),
}


class JointEffects(Distribution):
    """Prior of a law's effects: interactions are normal, and given these each question's shares are uniform.

    Args:
        law: the law.
        levels: the number of separate tables.

    Source:
        The docstring of this module.
    """

    support = constraints.independent(constraints.real, 2)

    def __init__(self, law: JointLaw, levels: int) -> None:
        self.law = law
        super().__init__((), (levels, law.basis.shape[1]))

    def log_prob(self, value: Array, intermediates: Any = None) -> Array:
        """Return the log density of effects (levels, cells − 1), up to a constant."""
        del intermediates
        shares = jax.nn.softmax(value @ self.law.basis.T, axis=-1)
        # The slope of the margins by the effects of single questions: their covariance over people.
        margins = self.law.basis[:, : self.law.alone]
        means = shares @ margins
        slope = jnp.einsum("lc,ca,cb->lab", shares, margins, margins) - means[:, :, None] * means[:, None, :]
        normal = -0.5 * jnp.sum(value[:, self.law.alone :] ** 2)
        return jnp.sum(jnp.linalg.slogdet(slope)[1]) + normal

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw effects (…, levels, cells − 1)."""
        assert key is not None
        law, shape = self.law, (*sample_shape, self.event_shape[0])
        interactions = jax.random.normal(key, (*shape, law.basis.shape[1] - law.alone))
        table = jax.nn.softmax(interactions @ law.basis[:, law.alone :].T, axis=-1)
        margins = [
            jax.random.dirichlet(jax.random.fold_in(key, place), jnp.ones(size), shape)
            for place, size in enumerate(law.sizes, 1)
        ]
        logs = jnp.log(jnp.maximum(_fitted(table.reshape(*shape, *law.sizes), margins), TINY)).reshape(
            *shape, -1
        )
        return logs @ (law.basis / np.sum(law.basis**2, axis=0))


def _fitted(table: Array, margins: Sequence[Array]) -> Array:
    """Return tables (…, answers of each question) with these margins (…, answers), keeping interactions."""
    questions = len(margins)

    def is_apart(state: tuple[Array, Array, Array]) -> Array:
        rounds, _, apart = state
        return (rounds < MOST_ROUNDS) & (apart > CLOSE)

    def fit_margins(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rounds, table, apart = state[0], state[1], jnp.zeros(())
        for place, margin in enumerate(margins):
            others = tuple(axis - questions for axis in range(questions) if axis != place)
            own = table.sum(axis=others)
            apart = jnp.maximum(apart, jnp.max(jnp.abs(own - margin)))
            table = table * jnp.expand_dims(margin / jnp.maximum(own, TINY), others)
        return rounds + 1, table, apart

    return jax.lax.while_loop(is_apart, fit_margins, (jnp.zeros((), int), table, jnp.ones(())))[1]
