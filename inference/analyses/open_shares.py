"""Shares that a design leaves open: their priors, in a program and as named draws."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpyro
from jax import Array

from inference.analyses.parameter_names import Parameter
from inference.analyses.stated_priors import Given
from inference.analyses.table import Private, Values
from inference.models.base import Draws
from inference.priors.laws import Stated, law, state


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
