"""A model from outside: a normal cut off at zero, not clipped there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpyro.distributions as dist
from numpy.random import Generator
from scipy import stats

from inference.models.family import Priors
from inference.models.number import Start
from inference.models.number_law import LENGTH, NumberLaw, measured
from inference.priors.laws import state
from inference.units import number_units
from schemas import Question


class CutNormal(NumberLaw):
    """Normal(loc, scale) given that it is positive; at loc = 0 a half-normal."""

    name = "cut_normal"
    measures = measured(loc=LENGTH, scale=LENGTH)

    def priors(self, question: Question) -> Priors:
        _, width = number_units(question)
        return {
            "loc": state("normal", loc=width / 2, scale=width / 2),
            "scale": state("gamma", shape=4.0, rate=16.0 / width),
        }

    def law(self, *, loc: Any, scale: Any) -> dist.Distribution:
        return dist.TruncatedNormal(loc, scale, low=0.0)

    def start(self, start: Start) -> dict[str, object]:
        return {"loc": start.mean, "scale": math.sqrt(start.variance)}

    def sample(self, question: Question, truth: Mapping[str, float], n: int, random: Generator) -> Any:
        del question
        loc, scale = truth["loc"], truth["scale"]
        return stats.truncnorm(-loc / scale, np.inf, loc, scale).rvs(n, random_state=random)
