"""MCMC-Ind: every record is a latent variable, with an explicit p(X) (DPBLR II-B3). Exact, and slow.

NUTS draws all records with the parameters, as the authors do. Both are independent standard numbers a priori:
records follow when parameters move, so that chains mix under little noise and under much.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.linalg import solve_triangular
from numpy.typing import NDArray

from inference.likelihoods.holders import HolderStatistics
from inference.models.base import Draws, Model
from inference.published.base import Method, Run, noisy_moments, public_counts, unaveraged
from inference.published.conjugate import ConjugatePrior
from inference.sampling.nuts import Sampled, sample

MOST_RECORDS = 1000


def records_model(statistics: HolderStatistics, prior: ConjugatePrior) -> Model:
    """Return the model of all records u = (1, x, y) and of the sums that were released."""
    rows, columns = np.triu_indices(statistics.sums.shape[-1])
    noise = statistics.noise[rows, columns]
    released = np.isfinite(noise) & (noise > 0)
    rows, columns, noise = rows[released], columns[released], noise[released]
    law = dist.Laplace if statistics.law == "laplace" else dist.Normal
    holders = np.repeat(np.arange(statistics.holders), statistics.counts.astype(int))
    n, d, q = len(holders), statistics.features, statistics.columns
    lower = np.tril_indices(d, -1)
    theta_root, scatter_root = np.linalg.cholesky(prior.theta_covariance), np.linalg.cholesky(prior.scatter)

    def standard(name: str, *shape: int) -> Array:
        """Draw independent standard normal numbers."""
        return numpyro.sample(name, dist.Normal().expand(shape).to_event(len(shape)))

    def program(released_sums: Array, noise: Array) -> None:
        # 1. The line: θ | σ² is normal, in units of the residual sd.
        variance = numpyro.sample("variance", dist.InverseGamma(prior.shape, prior.rate))
        sd = jnp.sqrt(variance)
        theta = numpyro.deterministic("theta", prior.theta_mean + sd * theta_root @ standard("line", q))
        # 2. The features' covariance F Fᵀ is inverse Wishart, by Bartlett's decomposition.
        freedom = prior.freedom - np.arange(d)
        squares = numpyro.sample("squares", dist.Gamma(freedom / 2, 0.5).to_event(1))
        bartlett = jnp.diag(jnp.sqrt(squares)).at[lower].set(standard("below", len(lower[0])))
        factor = solve_triangular(bartlett, scatter_root.T, lower=True).T
        # 3. The records.
        numbers = standard("records", n, d + 1)
        w = numbers[:, :-1] @ factor.T
        if statistics.intercept:
            away = factor @ standard("mean", d) / np.sqrt(prior.feature_mean_records)
            w = jnp.column_stack([jnp.ones(n), w + prior.feature_mean + away])
        u = jnp.column_stack([w, w @ theta + sd * numbers[:, -1]])
        # 4. Their sums, with noise.
        sums = jnp.zeros((statistics.holders, len(rows))).at[holders].add(u[:, rows] * u[:, columns])
        numpyro.sample("reports", law(sums, noise).to_event(2), obs=released_sums)

    initial: dict[str, object] = {
        "variance": prior.rate / (prior.shape + 1),
        "line": np.zeros(q),
        "squares": prior.freedom - np.arange(d),
        "below": np.zeros(len(lower[0])),
        "records": np.random.default_rng(0).normal(size=(n, d + 1)),
    }
    initial |= {"mean": np.zeros(d)} if statistics.intercept else {}
    data = {"released_sums": statistics.sums[:, rows, columns], "noise": noise}
    return Model(program, data, initial, _of_line)


def _small(statistics: HolderStatistics) -> str:
    if statistics.counts.sum() <= MOST_RECORDS:
        return ""
    return f"has a latent variable for each record: {MOST_RECORDS} records at most"


def _draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    drawn = sample(records_model(statistics, prior), run.seed, kept=run.kept, count=run.chains)
    return replace(drawn, sites=_of_line(drawn.sites))


def _of_line(sites: Draws) -> dict[str, NDArray[np.float64]]:
    """Return the draws without those of records."""
    return {name: sites[name] for name in ("theta", "variance")}


METHOD = Method("mcmc_ind", (public_counts, unaveraged, noisy_moments, _small), _draw, in_sds=True)
