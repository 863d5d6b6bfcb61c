"""Normal and exponential models of one number under Laplace noise."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.likelihoods import BinnedPerturbed, ClippedExponential, ClippedNormal, LaplaceNoise
from inference.models.base import Draws, Model
from inference.units import number_units
from ldp_client import Mechanism
from ldp_client.mechanisms.laplace import Laplace
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.histogram import histogram_edges


class Scale:
    """From a question's own units to bounds 0 and 1, and back."""

    def __init__(self, question: Question) -> None:
        self.low, self.width = number_units(question)

    @property
    def zero(self) -> float:
        """Where 0 lies: the origin of an exponential."""
        return -self.low / self.width

    def normal_parameters(self, draws: Draws) -> dict[str, NDArray[np.float64]]:
        """mean and sd in own units."""
        return {"mean": self.low + self.width * draws["mean"], "sd": self.width * draws["sd"]}

    def exponential_parameters(self, draws: Draws) -> dict[str, NDArray[np.float64]]:
        """rate per own unit."""
        return {"rate": draws["rate"] / self.width}


def normal(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """x ~ Normal(mean, sd), clipped to the bounds."""
    edges, noise_scale = _grid(mechanism)

    def program(n: int, counts: Array) -> None:
        base = ClippedNormal(*priors.normal(question))
        law = BinnedPerturbed(base, LaplaceNoise(noise_scale), edges, n)
        numpyro.sample("reports", law, obs=jnp.asarray(counts))

    mean, variance = _moments(summary, edges, noise_scale)
    initial = {"mean": mean, "sd": np.sqrt(variance)}
    return Model(program, _data(summary), initial, Scale(question).normal_parameters)


def exponential(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """x ~ Exponential(rate) from 0, clipped to the bounds."""
    edges, noise_scale = _grid(mechanism)
    scale = Scale(question)

    def program(n: int, counts: Array) -> None:
        base = ClippedExponential(priors.exponential(question), start=scale.zero)
        law = BinnedPerturbed(base, LaplaceNoise(noise_scale), edges, n)
        numpyro.sample("reports", law, obs=jnp.asarray(counts))

    mean, _ = _moments(summary, edges, noise_scale)
    initial = {"rate": 1.0 / max(mean - scale.zero, 0.02)}
    return Model(program, _data(summary), initial, scale.exponential_parameters)


def _data(summary: QuestionSummary) -> dict[str, object]:
    return {"n": summary.n, "counts": summary.values}


def _grid(mechanism: Mechanism) -> tuple[NDArray[np.float64], float]:
    """Cell edges and noise scale, both with the bounds at 0 and 1."""
    laplace = cast(Laplace, mechanism)
    return histogram_edges(laplace.levels) / laplace.levels, laplace.scale / laplace.levels


def _moments(summary: QuestionSummary, edges: NDArray[np.float64], scale: float) -> tuple[float, float]:
    """Rough mean and variance of the clipped answers, kept inside their possible range.

    Reports beyond the bounds lie one noise scale outside on average.
    """
    middles = np.concatenate([[-scale], (edges[1:] + edges[:-1]) / 2, [1 + scale]])
    squares = middles**2
    squares[[0, -1]] += scale**2
    weight = summary.values / max(summary.n, 1)
    mean = float(np.clip(weight @ middles, 0.02, 0.98)) if summary.n else 0.5
    variance = float(weight @ squares) - mean**2 - 2 * scale**2 if summary.n else 0.1
    return mean, float(np.clip(variance, 0.01, 0.25))
