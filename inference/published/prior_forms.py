"""The form in which a method takes the prior of θ and σ²: as drawn, and as stated in own units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.published.conjugate import ConjugatePrior
from inference.sampling.prior import PRIOR_DRAWS
from inference.units import RecordUnits
from schemas import Question

Values = NDArray[np.float64]


@dataclass(frozen=True)
class PriorForm:
    """theta: whether θ has a prior. in_sds: its covariance is σ² times the prior's, else free of σ².

    fixed_variance: what is taken for σ² and not inferred; None if its prior is the inverse gamma.
    """

    theta: bool = True
    in_sds: bool = False
    fixed_variance: Callable[[ConjugatePrior], float] | None = None

    def draws(self, prior: ConjugatePrior, seed: int) -> tuple[Values, Values] | None:
        """θ (draws, q) and σ² (draws,) before any data, in scaled units; None without a prior of θ."""
        if not self.theta:
            return None
        random = np.random.default_rng(seed)
        covariance = np.asarray(prior.theta_covariance)
        away = random.multivariate_normal(np.zeros(len(covariance)), covariance, PRIOR_DRAWS)
        variance = self._variance(prior, random)
        spread = np.sqrt(variance)[:, None] if self.in_sds else 1.0
        return np.asarray(prior.theta_mean) + spread * away, variance

    def _variance(self, prior: ConjugatePrior, random: np.random.Generator) -> Values:
        if self.fixed_variance is not None:
            return np.full(PRIOR_DRAWS, self.fixed_variance(prior))
        return float(prior.rate) / random.gamma(float(prior.shape), size=PRIOR_DRAWS)

    def stated(self, question: Question, intercept: bool, prior: ConjugatePrior) -> Mapping[str, Any]:
        """In the shape of a study's, in own units; `scale_over_sd` is in units of the residual sd."""
        if not self.theta:
            return {}
        units = RecordUnits(question)
        middle, half = units.response
        sds, means = np.sqrt(np.diag(np.asarray(prior.theta_covariance))), np.asarray(prior.theta_mean)
        stated: dict[str, Any] = {
            "coefficients": {
                name: self._normal(half / unit * mean, sd / unit, half)
                for name, unit, mean, sd in zip(
                    units.names, units.unit, means[int(intercept) :], sds[int(intercept) :], strict=True
                )
            },
            **self._stated_variance(prior, half),
        }
        if intercept:
            stated["centre"] = self._normal(middle + half * means[0], sds[0], half)
        return stated

    def _normal(self, loc: float, sd: float, half: float) -> dict[str, Any]:
        """sd: for a residual sd, or a scaled 1 of the response, of 1 in own units."""
        name, scale = ("scale_over_sd", sd) if self.in_sds else ("scale", half * sd)
        return {"distribution": "normal", "loc": float(loc), name: float(scale)}

    def _stated_variance(self, prior: ConjugatePrior, half: float) -> dict[str, Any]:
        if self.fixed_variance is not None:
            sd = half * float(np.sqrt(self.fixed_variance(prior)))
            return {"sd": {"distribution": "fixed", "value": sd}}
        scale = float(prior.rate) * half**2
        return {"variance": {"distribution": "inverse_gamma", "shape": float(prior.shape), "scale": scale}}


INDEPENDENT = PriorForm()
IN_SDS = PriorForm(in_sds=True)
