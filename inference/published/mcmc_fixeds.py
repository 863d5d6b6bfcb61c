"""MCMC-fixedS and the kernel of DDPLR's methods: θ and σ² given every holder's S_j = XᵀX.

z_j | S_j, θ, σ² is normal with mean S_j θ and covariance σ² S_j (Proposition 3.1, A.2 and A.4); the released
z_j has its noise on top. MCMC-fixedS (Algorithm 2) takes for S_j the positive semidefinite matrix nearest to
the released one. In Bayes-fixedS-fast (Algorithm 3) σ is fixed too, so that θ's posterior is normal in closed
form. MCMC-normalX draws S_j.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular
from numpy.typing import NDArray

from inference.likelihoods.holders import HolderStatistics
from inference.published.base import Kernel, Method, Run, gaussian, noisy_moments, run_kernel
from inference.published.conjugate import ConjugatePrior, log_determinant, nearest_semidefinite
from inference.sampling.nuts import Sampled

WALK_ACCEPTANCE = 0.44


class Released(NamedTuple):
    """Statistics of J holders, q columns, p = q + 1.

    sums: (J, p, p) noisy Σ uuᵀ. variance: (p, p) of their noise. counts, rows: (J,) records, and rows of the
    tables after averaging. warmup: for how many steps a chain adapts its proposals.
    """

    sums: Array
    variance: Array
    counts: Array
    rows: Array
    warmup: Array
    prior: ConjugatePrior

    @property
    def gram(self) -> Array:
        return self.sums[:, :-1, :-1]

    @property
    def cross(self) -> Array:
        return self.sums[:, :-1, -1]

    @property
    def has_intercept(self) -> bool:
        return self.sums.shape[-1] - 1 > self.prior.feature_mean.shape[-1]


def released(statistics: HolderStatistics, prior: ConjugatePrior, warmup: int = 0) -> Released:
    """Return the arrays of one set of statistics."""
    arrays: tuple[Any, ...] = (
        statistics.sums,
        statistics.noise**2,
        statistics.counts,
        np.floor(statistics.counts / statistics.average),
        np.float64(warmup),
        prior,
    )
    return Released(*arrays)


class State(NamedTuple):
    """latent: of what S_j is made. log_step: of σ²'s random walk. time: steps made."""

    theta: Array
    variance: Array
    latent: Any
    log_step: Array
    time: Array


def kernel(
    start: Callable[[Released], Any],
    move: Callable[[Array, State, Released], State],
    gram_of: Callable[[Any, Released], Array],
) -> Kernel:
    """Return the kernel of θ, σ² and S_j.

    start: (data) -> latent. move: (key, state, data) -> state, with a new latent. gram_of: (latent, data) ->
    S_j (J, q, q).
    """

    def init(key: Array, data: Released) -> State:
        first, second = jax.random.split(key)
        latent = start(data)
        # Each chain starts within a few factors of the mode of σ²'s prior.
        variance = data.prior.rate / (data.prior.shape + 1) * jnp.exp(jax.random.normal(first))
        theta = draw_theta(second, gram_of(latent, data), variance, data)
        return State(theta, variance, latent, jnp.zeros(()), jnp.zeros(()))

    def step(key: Array, state: State, data: Released) -> State:
        moving, drawing, walking = jax.random.split(key, 3)
        state = move(moving, state, data)
        gram = gram_of(state.latent, data)
        theta = draw_theta(drawing, gram, state.variance, data)
        variance, chance = _walk_variance(walking, gram, theta, state, data)
        log_step = adapted(state.log_step, chance, WALK_ACCEPTANCE, state.time, data)
        return State(theta, variance, state.latent, log_step, state.time + 1)

    return Kernel(init, step, lambda state: {"theta": state.theta, "variance": state.variance})


def _cross_factors(gram: Array, variance: Array, data: Released) -> Array:
    """Return lower factors (…, q, q) of the covariance of the released z."""
    return jnp.linalg.cholesky(variance * gram + jnp.diag(data.variance[:-1, -1]))


def log_cross(gram: Array, theta: Array, variance: Array, data: Released) -> Array:
    """Return log p(released z_j | S_j, θ, σ²), (J,), less constants."""
    factors = _cross_factors(gram, variance, data)
    residual = data.cross - gram @ theta
    white = solve_triangular(factors, residual[..., None], lower=True)[..., 0]
    return -(white**2).sum(-1) / 2 - log_determinant(factors) / 2


def theta_posterior(gram: Array, variance: Array, data: Released) -> tuple[Array, Array]:
    """θ | S_j, σ²: mean (q,) and the lower factor (q, q) of its precision."""
    prior: ConjugatePrior = data.prior
    factors = _cross_factors(gram, variance, data)
    white_gram = solve_triangular(factors, gram, lower=True)
    white_cross = solve_triangular(factors, data.cross[..., None], lower=True)[..., 0]
    inverse = jnp.linalg.inv(jnp.asarray(prior.theta_covariance))
    precision = inverse + jnp.einsum("jki,jkl->il", white_gram, white_gram)
    shift = inverse @ prior.theta_mean + jnp.einsum("jki,jk->i", white_gram, white_cross)
    factor = jnp.linalg.cholesky(precision)
    return cho_solve((factor, True), shift), factor


def draw_theta(key: Array, gram: Array, variance: Array, data: Released) -> Array:
    """Draw θ | S_j, σ² (equation 12)."""
    mean, factor = theta_posterior(gram, variance, data)
    return mean + solve_triangular(factor.T, jax.random.normal(key, mean.shape))


def _walk_variance(
    key: Array, gram: Array, theta: Array, state: State, data: Released
) -> tuple[Array, Array]:
    """Return σ² after a random walk's step on log σ², and the probability with which it was accepted."""
    stepping, accepting = jax.random.split(key)
    proposed = state.variance * jnp.exp(jnp.exp(state.log_step) * jax.random.normal(stepping))

    def log_target(variance: Array) -> Array:
        # The inverse-gamma density with the Jacobian of log σ².
        prior = -data.prior.shape * jnp.log(variance) - data.prior.rate / variance
        return prior + log_cross(gram, theta, variance, data).sum()

    taken, chance = accepted(accepting, log_target(proposed) - log_target(state.variance))
    return jnp.where(taken, proposed, state.variance), chance


def accepted(key: Array, log_ratio: Array) -> tuple[Array, Array]:
    """Return which Metropolis proposals are accepted, and with what probabilities; NaN is a density of 0."""
    chance = jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
    return jax.random.uniform(key, chance.shape) < chance, chance


def adapted(value: Array, chance: Array, target: float, time: Array, data: Released) -> Array:
    """Move a proposal's log scale towards the target acceptance (Andrieu & Thoms 2008), during warm-up."""
    gain = jnp.where(time < data.warmup, 2 * (time + 1.0) ** -0.6, 0.0)
    return value + gain * (chance - target)


KERNEL = kernel(
    lambda data: nearest_semidefinite(data.gram), lambda _key, state, _data: state, lambda gram, _data: gram
)


def _draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    return run_kernel(KERNEL, released(statistics, prior, run.warmup), run)


METHOD = Method("mcmc_fixeds", (gaussian, noisy_moments), _draw)

# DDPLR's crude estimate of σ is a third of the responses' bound, which is 1 in scaled units.
VARIANCE = 1 / 9
NOTE = "bayes_fixeds_fast does not estimate the residual sd: it takes a third of the response's bound"


def fast_posterior(
    statistics: HolderStatistics, prior: ConjugatePrior, variance: float = VARIANCE
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return θ's posterior mean (q,) and covariance (q, q), σ² given."""
    with jax.enable_x64(True):
        data = jax.tree.map(np.asarray, released(statistics, prior))
        posterior = theta_posterior(nearest_semidefinite(data.gram), jnp.asarray(variance), data)
        mean, factor = (np.asarray(part) for part in posterior)
    inverse = np.linalg.inv(factor)
    return mean, inverse.T @ inverse


def _draw_fast(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    mean, covariance = fast_posterior(statistics, prior)
    random, shape = np.random.default_rng(run.seed), (run.chains, run.kept)
    theta = random.multivariate_normal(mean, covariance, shape, method="cholesky")
    return Sampled({"theta": theta, "variance": np.full(shape, VARIANCE)}, np.zeros(shape, bool), (NOTE,))


FAST = Method("bayes_fixeds_fast", METHOD.checks, _draw_fast, fixed_variance=VARIANCE)
