"""The shares of choices under a study's prior: their sites, where they start, and how draws of them read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.models.base import Draws
from inference.ordered_simplex import breaking_order
from inference.priors.laws import law
from inference.share_sticks import ShareSticks
from schemas import Question

Values = NDArray[np.float64]
# Below this the shares themselves are no coordinates: their logarithms spread over hundreds.
SMALL = 0.1
# An estimate of so many standard errors tells a share of its own.
TOLD = 2.0
STICKS = "p_sticks"


class Shares:
    """A question's shares p ~ Dirichlet, of known concentration or of one with a law of its own.

    estimate (k,): unbiased shares; answers: as many answers without noise as the reports are worth.
    data: entries of a model's data, arguments of `draw`. initial: {site: value}.
    """

    def __init__(self, question: Question, estimate: Values, answers: float) -> None:
        self._question, self._stated = question, priors.priors_of(question)["p"]["concentration"]
        start = np.maximum(estimate, 0.1 / len(estimate))
        start = np.asarray(start / start.sum())
        error = np.sqrt((1 - 1 / len(estimate)) / len(estimate) / max(answers, 1e-9))
        guess = _likely_concentration(estimate, error)
        self.data: Mapping[str, object] = {
            "order": breaking_order(start),
            "guess": guess,
            "told": estimate > TOLD * error,
        }
        self.initial = self._initial(start, guess)

    def draw(self, order: Array, guess: Array, told: Array) -> Array:
        """Shares (k,) from the prior, inside a NumPyro program."""
        if not self._in_sticks:
            return priors.multinomial(self._question, order)
        concentration = self._concentration()
        sticks = self._sticks(concentration, order, guess, told)
        return numpyro.deterministic("p", sticks.shares(numpyro.sample(STICKS, sticks))[order[1]])

    def parameters(self, draws: Draws) -> dict[str, Values]:
        """p[choice], and the concentration where it is not known."""
        found = {f"p[{label}]": draws["p"][..., i] for i, label in enumerate(self._question.choices)}
        return {**found, "concentration": draws["concentration"]} if self._unknown else found

    @property
    def _unknown(self) -> bool:
        return isinstance(self._stated, Mapping)

    @property
    def _in_sticks(self) -> bool:
        return self._unknown or float(np.min(self._stated)) < SMALL

    def _concentration(self) -> Array:
        """Of each choice (k,)."""
        one: Any = self._stated
        if self._unknown:
            one = numpyro.sample("concentration", law(self._stated))
        return jnp.broadcast_to(jnp.asarray(one, float), (len(self._question.choices),))

    def _sticks(self, concentration: Array, order: Array, guess: Array, told: Array) -> ShareSticks:
        """A share that the reports tell must not move with the concentration; the others may, and so depend
        on it less.
        """
        guide = jnp.full_like(concentration, guess) if self._unknown else concentration
        return ShareSticks(concentration[order[0]], guide[order[0]], told[order[0]])

    def _initial(self, start: Values, guess: float) -> dict[str, object]:
        if not self._in_sticks:
            return {"p": start}
        with jax.enable_x64(True):
            order = breaking_order(start)[0]
            known = np.broadcast_to(guess if self._unknown else np.asarray(self._stated), start.shape)[order]
            sticks = ShareSticks(known, known, np.zeros(len(start), bool))
            first: dict[str, object] = {STICKS: np.asarray(sticks.coordinates(jnp.log(start[order])))}
        return {**first, "concentration": guess} if self._unknown else first


def _likely_concentration(estimate: Values, error: float) -> float:
    """By moments: Σ p² is (1 + c)/(1 + k c) under a symmetric Dirichlet, on average."""
    k = len(estimate)
    together = float(np.clip(np.sum(estimate**2) - k * error**2, 1.1 / k, 0.9))
    return float(np.clip((1 - together) / (k * together - 1), 0.1 / k, 10.0))
