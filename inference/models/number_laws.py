"""The laws that a number may have: where each computes, its parameters, and where a fit begins.

To add one: an entry in LAWS here and in ldp_client/documents/catalogue.py, its priors in inference/priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpyro.distributions as dist
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference import priors
from inference.models.base import Draws
from inference.units import Units, number_units
from schemas import Question

Parameters = dict[str, NDArray[np.float64]]


class Start(NamedTuple):
    """Rough mean and variance of the answers, in the law's units."""

    mean: float
    variance: float


@dataclass(frozen=True)
class NumberLaw:
    """One family.

    units: where the law computes: own = zero + unit × scaled. draw: draws the parameters' sites from their
    priors and gives the law before clipping. start: {site: value} by moments. own: sites and units ->
    parameters in the question's own units. whole: whether it is a law on the whole numbers. positive: whether
    it has nothing below zero.
    """

    units: Callable[[Question], Units]
    draw: Callable[[Question], Distribution]
    start: Callable[[Start], dict[str, object]]
    own: Callable[[Draws, Units], Parameters]
    whole: bool = False
    positive: bool = True


def _from_zero(question: Question) -> Units:
    """For laws on the positive numbers: 0 stays 0, the distance between the bounds is 1."""
    return Units(0.0, number_units(question).unit)


def _as_they_are(question: Question) -> Units:
    """For laws on the whole numbers."""
    del question
    return Units(0.0, 1.0)


def _unchanged(draws: Draws, units: Units) -> Parameters:
    del units
    return dict(draws)


def _log_normal_start(start: Start) -> dict[str, object]:
    spread = math.log1p(start.variance / start.mean**2)
    return {"log_mean": math.log(start.mean) - spread / 2, "log_sd": math.sqrt(spread)}


def _gamma_start(start: Start) -> dict[str, object]:
    return {"shape": _between(start.mean**2 / start.variance), "mean": start.mean}


def _weibull_start(start: Start) -> dict[str, object]:
    shape = _between((math.sqrt(start.variance) / start.mean) ** -1.086)
    return {"shape": shape, "scale": start.mean / math.gamma(1 + 1 / shape)}


def _beta_start(start: Start) -> dict[str, object]:
    size = max(start.mean * (1 - start.mean) / start.variance - 1, 0.2)
    return {"a": _between(start.mean * size), "b": _between((1 - start.mean) * size)}


def _between(value: float) -> float:
    return min(max(value, 0.2), 50.0)


LAWS: dict[str, NumberLaw] = {
    "normal": NumberLaw(
        number_units,
        lambda question: dist.Normal(*priors.normal(question)),
        lambda start: {"mean": start.mean, "sd": math.sqrt(start.variance)},
        lambda draws, units: {
            "mean": units.zero + units.unit * draws["mean"],
            "sd": units.unit * draws["sd"],
        },
        positive=False,
    ),
    "exponential": NumberLaw(
        _from_zero,
        lambda question: dist.Exponential(priors.exponential(question)),
        lambda start: {"rate": 1.0 / start.mean},
        lambda draws, units: {"rate": draws["rate"] / units.unit},
    ),
    "lognormal": NumberLaw(
        _from_zero,
        lambda question: dist.LogNormal(*priors.lognormal(question)),
        _log_normal_start,
        lambda draws, units: {
            "log_mean": draws["log_mean"] + math.log(units.unit),
            "log_sd": draws["log_sd"],
        },
    ),
    "gamma": NumberLaw(
        _from_zero,
        lambda question: dist.Gamma(*priors.gamma(question)),
        _gamma_start,
        lambda draws, units: {"shape": draws["shape"], "mean": draws["mean"] * units.unit},
    ),
    "weibull": NumberLaw(
        _from_zero,
        lambda question: dist.Weibull(*priors.weibull(question)),
        _weibull_start,
        lambda draws, units: {"shape": draws["shape"], "scale": draws["scale"] * units.unit},
    ),
    "beta": NumberLaw(
        number_units,
        lambda question: dist.Beta(*priors.beta(question)),
        _beta_start,
        _unchanged,
        positive=False,
    ),
    "poisson": NumberLaw(
        _as_they_are,
        lambda question: dist.Poisson(priors.poisson(question)),
        lambda start: {"rate": start.mean},
        _unchanged,
        whole=True,
    ),
    "geometric": NumberLaw(
        _as_they_are,
        lambda question: dist.GeometricProbs(priors.geometric(question)),
        lambda start: {"p": 1 / (1 + start.mean)},
        _unchanged,
        whole=True,
    ),
}
