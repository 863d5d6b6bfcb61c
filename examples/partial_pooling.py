"""Partial pooling of six regions, each with its own privacy budget; the last region uses Gaussian noise.

Run: python examples/partial_pooling.py. It simulates the regions, fits them together, and prints each
region's mean with its 90 % interval. Only the two likelihoods are specific to ldpkit.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpyro.infer import MCMC, NUTS

from inference.likelihoods import BinnedPerturbed, GaussianNoise, LaplaceNoise, Perturbed, clipped

# Answers are between 0 and 1. A device of region g adds Laplace noise of scale 1/ε.
EPSILONS = np.array([0.5, 1.0, 1.0, 2.0, 4.0])
PEOPLE = np.array([4000, 2000, 150, 2000, 500])
LAST_NOISE_SD, LAST_PEOPLE = 1.5, 400
EDGES = np.linspace(0.0, 1.0, 65)


class Survey(NamedTuple):
    """counts (5, 66): histograms of five regions. reports (400,): single reports of the sixth region."""

    counts: np.ndarray
    reports: np.ndarray


def simulate(means: np.ndarray, sd: float, seed: int) -> Survey:
    """Simulate the reports of devices: clipped answers plus noise."""
    random = np.random.default_rng(seed)
    counts = []
    for mean, epsilon, people in zip(means[:-1], EPSILONS, PEOPLE, strict=True):
        answers = np.clip(random.normal(mean, sd, people), 0.0, 1.0)
        reports = answers + random.laplace(0.0, 1.0 / epsilon, people)
        counts.append(np.bincount(np.searchsorted(EDGES, reports, side="right"), minlength=len(EDGES) + 1))
    last = np.clip(random.normal(means[-1], sd, LAST_PEOPLE), 0.0, 1.0)
    return Survey(np.stack(counts), last + random.normal(0.0, LAST_NOISE_SD, LAST_PEOPLE))


def model(counts: Array, reports: Array) -> None:
    """Model the regions' means with a common prior, which matters most for small or very private regions."""
    centre = numpyro.sample("centre", dist.Normal(0.5, 0.5))
    spread = numpyro.sample("spread", dist.HalfNormal(0.3))
    sd = numpyro.sample("sd", dist.Gamma(2.0, 8.0))
    with numpyro.plate("regions", len(EPSILONS) + 1):
        offset = numpyro.sample("offset", dist.Normal(0.0, 1.0))
    mean = numpyro.deterministic("mean", centre + spread * offset)
    with numpyro.plate("histograms", len(EPSILONS)):
        noise = LaplaceNoise(1.0 / EPSILONS)
        law = BinnedPerturbed(clipped(dist.Normal(mean[:-1], sd)), noise, EDGES, counts.sum(-1))
        numpyro.sample("counts", law, obs=counts)
    with numpyro.plate("people", len(reports)):
        last = Perturbed(dist.Normal(mean[-1], sd), (0.0, 1.0), GaussianNoise(LAST_NOISE_SD))
        numpyro.sample("reports", last, obs=reports)


def fit(survey: Survey, seed: int, draws: int = 500) -> dict[str, np.ndarray]:
    """Return posterior draws of every site, from two chains in parallel."""
    chains = MCMC(
        NUTS(model, target_accept_prob=0.9),
        num_warmup=draws,
        num_samples=draws,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    chains.run(jax.random.key(seed), jnp.asarray(survey.counts), jnp.asarray(survey.reports))
    return {name: np.asarray(values) for name, values in chains.get_samples().items()}


def main() -> None:
    """Simulate, fit, and print intervals."""
    means = np.array([0.42, 0.55, 0.48, 0.61, 0.50, 0.45])
    with jax.enable_x64(True):
        drawn = fit(simulate(means, sd=0.15, seed=1), seed=2)
    for region, truth in enumerate(means):
        low, middle, high = np.quantile(drawn["mean"][:, region], [0.05, 0.5, 0.95])
        print(f"region {region}: {middle:.3f}   90 % interval {low:.3f} to {high:.3f}   truth {truth:.2f}")


if __name__ == "__main__":
    main()
