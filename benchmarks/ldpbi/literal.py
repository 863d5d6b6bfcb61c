"""The per-report models as LDPBI writes them, for comparison of speed: one term of the likelihood per report.

Same priors as ours; float64 and NumPyro's NUTS as it comes. Cost and memory grow with the number of reports.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.stats import norm

from inference.models.family import draw, priors_of
from inference.units import number_units
from schemas import Question


def normal_log_density(z: Array, mean: Array, sd: Array, noise_scale: float) -> Array:
    """LDPBI 10.1: log density of reports of Normal(mean, sd) clipped to [0, 1] plus Laplace(noise_scale).

    As printed (METHODS 2.1): differences of Φ lose their digits where a tail meets a large exponential.
    """
    a, b, scale = 0.0, 1.0, noise_scale
    middle, ratio = jnp.clip(z, a, b), sd / noise_scale
    at_a = norm.cdf((a - mean) / sd) * jnp.exp(-jnp.abs(z - a) / scale)
    at_b = norm.cdf((mean - b) / sd) * jnp.exp(-jnp.abs(z - b) / scale)
    below = jnp.exp((mean - z) / scale + ratio**2 / 2) * (
        norm.cdf((middle - mean) / sd - ratio) - norm.cdf((a - mean) / sd - ratio)
    )
    above = jnp.exp((z - mean) / scale + ratio**2 / 2) * (
        norm.cdf((b - mean) / sd + ratio) - norm.cdf((middle - mean) / sd + ratio)
    )
    return jnp.log((at_a + at_b + below + above) / (2 * scale))


def normal_model(question: Question, noise_scale: float, reports: Array) -> None:
    """Reports (n,) in scaled units: bounds 0 and 1."""
    low, width = number_units(question)
    mean, sd = draw(question, "mean", low, width), draw(question, "sd", 0.0, width)
    numpyro.factor("reports", normal_log_density(reports, mean, sd, noise_scale).sum())


def unary_log_density(bits: Array, shares: Array, p: float, q: float) -> Array:
    """LDPBI 11: log Σ_k θ_k Π_j P(bit j | k) of each report, from bits (n, k) and shares (k,)."""
    if_set = bits * p + (1 - bits) * (1 - p)
    if_not = bits * q + (1 - bits) * (1 - q)
    nobody = jnp.prod(if_not, axis=1)
    return jnp.log(nobody * ((if_set / if_not) @ shares))


def unary_model(question: Question, p: float, q: float, reports: Array) -> None:
    """Reports (n, k) of 0 and 1."""
    concentration = priors_of(question)["p"]["concentration"] * jnp.ones(len(question.choices))
    shares = numpyro.sample("p", dist.Dirichlet(concentration))
    numpyro.factor("reports", unary_log_density(reports, shares, p, q).sum())
